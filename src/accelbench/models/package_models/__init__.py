"""Models that an installed package builds by name, without weights: timm's and torchvision's."""
