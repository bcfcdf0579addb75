"""What a network costs: from its configuration alone, counted, and (later) measured on a device."""
