"""Why a part cannot serve a problem, as one sentence."""


class Refusal(TypeError):
    """This problem is not one for this method, set or solver.

    A table of experiments shows the sentence where the number would stand.
    """
