"""One function a surface: a `Report` becomes text."""
