"""The marks that end sentences, script by script: Unicode's property Sentence_Terminal, and the Tibetan shads.

All are written as the inside of a regular expression's character class.
"""

SPACED = (
    ".!?…\u2024"  # Western; U+2024 is a period to some, a semicolon to Armenians
    "\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e53\u2e54"  # double, inverted, stenographic and medieval ones
    "\u0589"  # Armenian, which writes numbers and times with it too
    "\u061d\u061e\u06d4"  # Arabic, Urdu, which writes abbreviations with its full stop too
    "\u2cf9-\u2cfb"  # Coptic
    "\ua4ff"  # Lisu
    "\U00016e98"  # Medefaidrin
)
"""Marks that end a sentence only before a space. They also stand within numbers and abbreviations, or their script has
small letters, with which a sentence goes on."""

_LIVING = (
    "。｡！？︒︕︖﹖﹗"  # Chinese and Japanese
    "\u061f"  # Arabic, Persian, Urdu
    "\u0700-\u0702"  # Syriac
    "\u07f9"  # N'Ko
    "\u0837\u0839\u083d\u083e"  # Samaritan
    "\u0964\u0965"  # Devanagari, Bengali, Gurmukhi, Gujarati, Odia, Telugu, Kannada and others: danda, double danda
    "\u0f0d-\u0f12"  # Tibetan
    "\u104a\u104b"  # Burmese
    "\u1362\u1367\u1368"  # Ethiopic
    "\u166e"  # Canadian syllabics
    "\u1735\u1736"  # Hanunoo and others of the Philippines
    "\u17d4\u17d5"  # Khmer
    "\u1803\u1809"  # Mongolian, Manchu
    "\u1944\u1945"  # Limbu
    "\u1aa8-\u1aab"  # Tai Tham
    "\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d-\u1b7f"  # Balinese
    "\u1c3b\u1c3c"  # Lepcha
    "\u1c7e\u1c7f"  # Ol Chiki (Santali)
    "\ua60e\ua60f"  # Vai
    "\ua6f3\ua6f7"  # Bamum
    "\ua876\ua877"  # Phags-pa
    "\ua8ce\ua8cf"  # Saurashtra
    "\ua92f"  # Kayah Li
    "\ua9c8\ua9c9"  # Javanese
    "\uaa5d-\uaa5f"  # Cham
    "\uaaf0\uaaf1\uabeb"  # Meetei Mayek (Manipuri)
)
_RARE = (
    "\U00010a56\U00010a57"  # Kharoshthi
    "\U00010f55-\U00010f59"  # Sogdian
    "\U00010f86-\U00010f89"  # Old Uyghur
    "\U00011047\U00011048"  # Brahmi
    "\U000110be-\U000110c1"  # Kaithi
    "\U00011141-\U00011143"  # Chakma
    "\U000111c5\U000111c6\U000111cd\U000111de\U000111df"  # Sharada
    "\U00011238\U00011239\U0001123b\U0001123c"  # Khojki
    "\U000112a9"  # Multani
    "\U000113d4\U000113d5"  # Tulu-Tigalari
    "\U0001144b\U0001144c"  # Newa
    "\U000115c2\U000115c3\U000115c9-\U000115d7"  # Siddham
    "\U00011641\U00011642"  # Modi
    "\U0001173c-\U0001173e"  # Ahom
    "\U00011944\U00011946"  # Dives Akuru
    "\U00011a42\U00011a43"  # Zanabazar Square
    "\U00011a9b\U00011a9c"  # Soyombo
    "\U00011c41\U00011c42"  # Bhaiksuki
    "\U00011ef7\U00011ef8"  # Makasar
    "\U00011f43\U00011f44"  # Kawi
    "\U00016a6e\U00016a6f"  # Mro
    "\U00016af5"  # Bassa Vah
    "\U00016b37\U00016b38\U00016b44"  # Pahawh Hmong
    "\U00016d6e\U00016d6f"  # Kirat Rai
    "\U0001bc9f"  # Duployan
    "\U0001da88"  # SignWriting
)
UNSPACED = _LIVING + _RARE
"""Marks that end a sentence, whether or not a space follows."""

WIDE_PERIODS = "\uff0e\ufe52"
"""Wide periods of Japanese and Chinese; between digits, and after the number of a list item, they end no sentence."""

WITHOUT_SPACES = (
    "\u0e01-\u109f"  # Thai, Lao, Tibetan, Burmese
    "\u1780-\u17ff"  # Khmer
    "\u2e80-\u9fff\uf900-\ufaff\uff01-\uff65\U00020000-\U0003ffff"  # Chinese and Japanese
)
"""Letters of scripts that put no spaces between words."""

ANY = SPACED + _LIVING + WIDE_PERIODS + "\U00010a56-\U0001da88"
"""All marks; one range holds the marks of rare scripts with many other characters, since fewer ranges are faster."""
