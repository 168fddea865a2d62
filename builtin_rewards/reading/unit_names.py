"""The names of units: which letters behind a number are a unit, by pint's name or by a name of our own for money.

pint knows the same units under many more names, among them `a`, `e`, `k`, `ab`, `amps` (attometre picosecond) and
`alpha`. In an answer those are letters of a formula or words, so the names that count are listed here; what they are
worth is pint's to say.
"""

from __future__ import annotations

from builtin_rewards.reading.expressions import FUNCTION_NAMES, GREEK

# Symbols count in their own case, those of the first line with each prefix; `pm` is a time of day.
_PREFIXES = ("", *"TGMkdcmunpf")
_PREFIXED_TEXT = "m g s A K N J W V C F T H S Hz L l Wb lx lm Bq Gy Sv Pa eV cal mol bar ohm"
_SYMBOLS_TEXT = """
in ft yd mi lb oz min h hr yr ha ly Da hPa atm mmHg torr psi kWh Wh MWh Ah mAh mph kph rpm rad mrad sr cd kat erg
sec gal hp qt tbsp tsp M mM uM nM B kB MB GB TB dB
"""
_ANY_CASE_TEXT = "km cm mm kg mg mL cL dL kW kWh mph GB MB kB Hz kHz MHz GHz kJ kcal ft in lb oz min hr sec rpm mol"
_WORD_PREFIXES_TEXT = "tera giga mega kilo hecto deci centi milli micro nano pico femto"
_PREFIXED_WORDS_TEXT = """
meter metre gram second volt ampere amp watt joule newton pascal hertz ohm farad henry tesla coulomb mole kelvin liter
litre calorie byte bit bar radian electronvolt gray sievert becquerel lumen lux weber siemens
"""
_WORDS_TEXT = """
inch foot yard mile pound ounce ton tonne minute hour day week month year century fortnight degree gallon quart
pint cup tablespoon teaspoon acre hectare knot atmosphere turn horsepower angstrom steradian candela dyne erg gauss
poise furlong arcminute arcsecond light_year nautical_mile fluid_ounce dollar euro yen rupee yuan won franc peso
ruble zloty baht naira dong lira
"""
# Names that pint has under another one, reads otherwise, or does not have.
_OTHER_NAMES_TEXT = """
radian=rad feet=foot inches=inch lbs=lb kilo=kilogram kmh=kph rev=turn revolution=turn deg=degree degc=degC degf=degF
celsius=degC fahrenheit=degF centigrade=degC centuries=century henries=henry
wk=week wks=week decade=decayear unit=unnamed_unit lightyear=light_year au=astronomical_unit
"""
_CURRENCIES_TEXT = """
usd=dollar buck=dollar cent=us_cent penny=us_cent pennies=us_cent eur=euro jpy=yen inr=rupee cny=yuan rmb=yuan
renminbi=yuan krw=won chf=franc rub=ruble rouble=ruble pln=zloty thb=baht ngn=naira vnd=dong try=lira php=peso mxn=peso
gbp=sterling sek=krone nok=krone dkk=krone czk=koruna brl=real cad=cad aud=aud nzd=nzd sgd=sgd hkd=hkd twd=twd zar=zar
huf=huf idr=idr myr=ringgit aed=aed sar=sar ils=ils egp=egp pkr=pkr bdt=bdt
"""
_MONEY_SIGNS_TEXT = """
$=dollar R$=real A$=aud AU$=aud C$=cad CA$=cad HK$=hkd NT$=twd NZ$=nzd S$=sgd MX$=peso €=euro £=sterling ¥=yen_sign
₹=rupee Rs=rupee ₩=won 원=won ₽=ruble ₱=peso ₦=naira ₫=dong ฿=baht ₺=lira 元=yuan 円=yen ¢=us_cent zł=zloty Kč=koruna
kr=krone
"""


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


_CURRENCIES, _MONEY_SIGNS = _pairs(_CURRENCIES_TEXT), _pairs(_MONEY_SIGNS_TEXT)
_OTHER_NAMES = _pairs(_OTHER_NAMES_TEXT) | _CURRENCIES
_ROUBLES = "\u0440\u0443\u0431"
_CODE = "|".join(name.upper() for name in _CURRENCIES if len(name) == 3)
# Patterns of the signs and codes before a number, and behind it.
MONEY = rf"(?:(?:(?<![A-Za-z])[A-Z]{{1,3}})?\$|[€£¥₹¢฿\u20a0-\u20cf]|\bRs\b\.?|\b(?:{_CODE})\b)"
MONEY_BEHIND = rf"[$€£¥₹¢฿\u20a0-\u20cf元円원]|zł\b|Kč\b|kr\b|{_ROUBLES}\w{{0,3}}\b\.?"
_NAMES_OF_MONEY = {*_MONEY_SIGNS.values(), *_CURRENCIES.values()}
# A sign may be that of several currencies.
_ALIKE = {"dollar": {"aud", "cad", "hkd", "twd", "nzd", "sgd"}, "yen_sign": {"yen", "yuan"}, "sterling": {"pound"}}


def money_of(sign: str) -> str:
    """Return the currency of a sign or code; one that is not listed is a currency of its own."""
    name = sign.strip(". ")
    if name.startswith(_ROUBLES):
        return "ruble"
    return _MONEY_SIGNS.get(name) or _CURRENCIES.get(name.lower()) or ("dollar" if name.endswith("$") else name)


def is_money(name: str) -> bool:
    return name in _NAMES_OF_MONEY


def may_be_one(gold: str, answer: str) -> bool:
    """Return whether two names may be those of the same currency, as `$` and `A$`, or `£` and pounds."""
    return answer in _ALIKE.get(gold, ()) or gold in _ALIKE.get(answer, ())


def _long_names() -> dict[str, str]:
    prefixes, prefixed, others = ("", *_WORD_PREFIXES_TEXT.split()), _PREFIXED_WORDS_TEXT.split(), _WORDS_TEXT.split()
    names = {prefix + name: prefix + name for name in prefixed for prefix in prefixes}
    names |= {name.replace("_", " "): name for name in others}
    names |= {name: unit for name, unit in _OTHER_NAMES.items() if len(name) > 3}
    names |= {f"{name}s": unit for name, unit in names.items()} | _OTHER_NAMES
    names |= {f"{name}s": name for name in ("hr", "yr", "min", "sec", "gal")}
    names |= {f"fl {name}": "fluid_ounce" for name in ("oz", "ounce", "ounces")} | {"fluid oz": "fluid_ounce"}
    return names | {name.lower(): name for name in _ANY_CASE_TEXT.split()}


_SYMBOL_UNITS = {prefix + name: prefix + name for name in _PREFIXED_TEXT.split() for prefix in _PREFIXES}
_SYMBOL_UNITS |= {name: name for name in _SYMBOLS_TEXT.split()}
_SYMBOL_UNITS["dB"] = "sound_level"  # a logarithm, which no factor converts: none of pint's units
del _SYMBOL_UNITS["pm"]
_WORD_UNITS = _long_names()
_GLUED = frozenset("VNJKWACTFL")  # the letters that are a unit right behind a digit; `5m` is a formula


def unit_name(name: str, *, glued: bool) -> str | None:
    """Return the unit of a name; ``glued``: no blank stands before it, and nothing says that there is a unit."""
    if len(name) == 1:
        return _SYMBOL_UNITS.get(name) if not glued or name in _GLUED else None
    return _SYMBOL_UNITS.get(name) or _WORD_UNITS.get(name.lower())


# Words

_NO_NOUN_TEXT = """
a about after all also altogether an and are as at away because before but by each every for from had has
have how however if in instead into is it left less long longer more now of old older on only or out over
per remaining since so such tall taller than that the then there thus to together total under until was
we were when where which while who wide will with would not
"""
NO_NOUN = frozenset(_NO_NOUN_TEXT.split())
# With these behind it, a number is part of a formula, or in doubt.
_NO_UNIT_TEXT = """
infty cdot cup cap pm i e choose plus minus factorial half zero doubled tripled halved squared cubed or not isn't wasn't
nor either maybe perhaps but except incorrect wrong false never rejected discarded dismissed ruled ncr npr
repeating recurring
"""
NO_UNIT = frozenset((*_NO_UNIT_TEXT.split(), *FUNCTION_NAMES, *GREEK.lower().split("|"), "pi"))
_TWO_LETTERS_TEXT = "am an as at be by do go he if in is it me my no of on ok or ox pm so to tv up us we st nd rd th"
_TWO_LETTERS = frozenset(_TWO_LETTERS_TEXT.split())
_HYPHENATED_TEXT = """
digit sided fold person people member point part piece page step way star letter word side question bit man player story
room seat item pack game dimensional
"""
HYPHENATED = frozenset(_HYPHENATED_TEXT.split())  # the words, besides units, before which a hyphen is no minus


def is_formula(word: str) -> bool:
    """Return whether a word behind a number is letters of a formula: ``xy``, ``abc``, ``dx``, ``alpha``, ``nCr``."""
    lower = word.lower()
    if lower in NO_UNIT or lower in _TWO_LETTERS:
        return lower not in _TWO_LETTERS
    if len(word) == 2:
        return unit_name(word, glued=False) is None
    return len(word) == 3 and ord(lower[2]) - ord(lower[1]) == ord(lower[1]) - ord(lower[0]) == 1
