"""Days on which Japan does not work, known long before: national holidays, New Year and Obon."""

import numpy as np

# national holidays, with their substitutes, from 2018 to February 2021
_HOLIDAYS = (
    "2018-01-01 2018-01-08 2018-02-11 2018-02-12 2018-03-21 2018-04-29 2018-04-30 2018-05-03 "
    "2018-05-04 2018-05-05 2018-07-16 2018-08-11 2018-09-17 2018-09-23 2018-09-24 2018-10-08 "
    "2018-11-03 2018-11-23 2018-12-23 2018-12-24 2019-01-01 2019-01-14 2019-02-11 2019-03-21 "
    "2019-04-29 2019-04-30 2019-05-01 2019-05-02 2019-05-03 2019-05-04 2019-05-05 2019-05-06 "
    "2019-07-15 2019-08-11 2019-08-12 2019-09-16 2019-09-23 2019-10-14 2019-10-22 2019-11-03 "
    "2019-11-04 2019-11-23 2020-01-01 2020-01-13 2020-02-11 2020-02-23 2020-02-24 2020-03-20 "
    "2020-04-29 2020-05-03 2020-05-04 2020-05-05 2020-05-06 2020-07-23 2020-07-24 2020-08-10 "
    "2020-09-21 2020-09-22 2020-11-03 2020-11-23 2021-01-01 2021-01-11 2021-02-11 2021-02-23"
)
HOLIDAYS = np.array(_HOLIDAYS.split(), dtype="datetime64[D]")
NEW_YEAR = ("12-29", "12-30", "12-31", "01-01", "01-02", "01-03")
OBON = ("08-13", "08-14", "08-15", "08-16")
FLAGS = 3


def calendar_flags(days: np.ndarray) -> np.ndarray:
    """Return 1 or 0 for each day, (T, 3): national holiday, New Year (29 December to 3 January),
    Obon (13 to 16 August).

    >>> calendar_flags(np.array(["2019-12-31", "2020-01-01"], dtype="datetime64[D]")).tolist()
    [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    """
    months = np.array([str(day)[5:] for day in days])
    flags = [np.isin(days, HOLIDAYS), np.isin(months, NEW_YEAR), np.isin(months, OBON)]
    return np.stack(flags, axis=1).astype(np.float32)
