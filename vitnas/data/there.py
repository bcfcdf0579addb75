"""Whether the images are where the configuration says; most of it without torch."""

from __future__ import annotations

from vitnas.config.data import TIMM, DataConfig
from vitnas.data import cache
from vitnas.data.listing import class_folders
from vitnas.data.place import root_of


def check_there(config: DataConfig) -> None:
    """Refuse what is wrong with this machine's folders and can be seen without reading an image.

    Raises:
        DataError: as `vitnas.data.table.read_source`; or the cache of decoded images is no folder,
            or its limit no size.
    """
    if config.name == "imagefolder":
        class_folders(config)
        cache.home()
        cache.limit()
    elif config.name == TIMM:
        from vitnas.data.timm_sets import check_place  # which needs torch

        check_place(config)
    elif config.folder is not None:
        root_of(config)
