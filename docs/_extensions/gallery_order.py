"""The order of the gallery: from what most people come for to what few need."""

STORIES = (
    "new_hospital", "fraud_by_month", "presence_only", "desert_survey", "season", "wide_interval", "three_hospitals",
    "billion_rows", "paper_figures",
)  # fmt: skip


class StoryOrder:
    """Sorts scripts as they are named above; others come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        story = name.removeprefix("plot_").removesuffix(".py")
        return (STORIES.index(story) if story in STORIES else len(STORIES), name)
