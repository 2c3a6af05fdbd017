"""Files that come with the package, and the daily sales among them for first steps."""

from pathlib import Path

EMBEDDED = Path(__file__).parents[1] / "embedded"
SHA256 = {  # of the files of named problems, unpacked where the name ends in .gz
    "la_haute_borne_hourly.csv.gz": (
        "0bb81021ca63bf2dbeda9b78d2796fb7d98413730266ccd0ca0d070f501e7d22"
    ),
    "bakery_sales.npz": "5a909c65b14be69220868a68587f8144f4037b8abdcd8e166130e7d6b4ea8983",
    "restaurant_sales.npz": "6ff7b3e06f9d70082add2480de2b8962efed347cbf922c78379f150afa8a452c",
    "sid_store1.npz": "ad93e8d34b8b83443c101941655e17fcebed48719b4b6bd1cf03eda95419a3d0",
}


def sample_csv() -> Path:
    """Return the path of daily sales of five items, 2016 and 2017: date, item, sold.

    The items are 1 to 5 of store 1 of the store item demand set, without a gap, 3,655 rows. The
    licence is in ``NOTICE.md`` beside the file.

    >>> import costscape as cs
    >>> cs.sample_csv().read_text().splitlines()[:2]
    ['date,item,sold', '2016-01-01,1,21']
    """
    return EMBEDDED / "sales.csv"
