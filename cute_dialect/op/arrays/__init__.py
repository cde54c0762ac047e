"""Arrays of any library: views, element types, devices, overlap and memory."""
