"""The plugin of pytest: a test measures a model, holds it to limits, and a run compares itself.

pytest imports `plugin` in every run of a project that has accelbench installed, whatever is tested:
it and this module import nothing of ours. The rest comes when a test asks for the fixture.
"""

#: The option that makes what is measured a baseline that does not exist yet.
NEW_BASELINE = "--accelbench-new-baseline"


class CannotTellWarning(UserWarning):
    """A limit, or a change from a baseline, was neither shown to be kept nor to be missed."""
