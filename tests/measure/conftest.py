from hypothesis import settings

# The same examples every time, and no verdict by the clock: others use the machine too.
settings.register_profile("measure", deadline=None, derandomize=True)
settings.load_profile("measure")
