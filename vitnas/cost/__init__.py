"""What a network costs: from its configuration alone, counted, and measured on a device."""
