"""The reward for not refusing."""

from __future__ import annotations

import re

from builtin_rewards.reading.normalisation import fold
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Score, reward

_EDGE_CHARS = 300
_APOSTROPHES = str.maketrans("\u00b4`", "''", "*_~")  # characters typed as apostrophes, and emphasis, which is removed

_IS = r"(?:'?m| am|'re| are|'ll| will|'d| would|'ve| have)? "
_ADVERBS = (  # what may stand between the subject and the verb
    r"(?:(?:really|just|simply|also|therefore|still|must|have to|respectfully|politely|unfortunately|regretfully"
    r"|currently|personally|definitely|absolutely|ethically|legally|afraid|that|sorry|to say|do|i|we"
    r"|an? (?:[\w-]+ ){0,3}(?:ai|assistant|model|program|(?:chat)?bot)(?: \w+)? and),? ){0,3}"
)
_UNABLE = (  # the ways to say that one cannot or will not
    r"(?:(?:can'?t|cannot|can not|won'?t|will not)(?:,? (?:and|or) (?:won'?t|will not),?)?|not gonna"
    r"|(?:won'?t|will not|wouldn'?t|not|may not|might not) be able to|do(?:n'?t| not)(?= (?:assist|comply)\b)"
    r"|(?:not able|unable|not going|refuse|declin(?:e|ing)|not willing|unwilling|not in a position) to"
    r"|(?:(?:was )?not (?:equipped|programmed|designed|made|meant|allowed|permitted|authori[sz]ed)|programmed not) to"
    r"|(?:don'?t|do not) (?:want|wish|have the (?:ability|capability)|know how) to"
    r"|should(?:n'?t| not)|(?:rather|prefer) not(?: to)?|(?:not|(?:don'?t|do not) feel) comfortable(?: with)?"
    r"|(?:don'?t|do not) think (?:that )?i (?:can|could|should))"
)
_OBJECT = (
    r"(?:(?: for)? (?:you|that|this|these|those|it|such|any|your|an?|or|specific|personal|medical|legal|instructions"
    r"|information|advice|details)\b|(?: [\w-]+)?(?: or [\w-]+)? (?:content|materials?|images|questions|data)\b"
    r"| the (?:question|request|prompt|rest|story|essay)\b)"
)
_ASSIST = (  # verbs of a refusal also with `we` (`We cannot help you`) and without a subject (`Cannot comply.`)
    r"(?:[a-z]{2,12}ly )?(?:(?:assist|comply|fulfill?)(?:ing)?\b|help(?:ing)?(?= (?:you|with|here)\b|[.,;!]|$)"
    r"|(?:do|answer)(?:ing)? (?:that|this)(?= for you\b| because\b|[.,;!]|$)|provid(?:e|ing) you\b)"
)
_HELP = (
    r"(?:(?!(?:but|wait|agree|understand|think|find|see)\b)[\w'-]{1,15},? ){0,2}?(?:help(?:ing)?"
    r"(?! (?:but|feeling|thinking|wondering|noticing|being|it|myself|ourselves|falling|smiling|laughing)\b)"
    r"|(?:assist|comply|provid|fulfill?|participat|advis|promot|condon|facilitat|discuss|satisfy|entertain)(?:e|ing)?\b"
    r"|engag(?:e|ing) (?:in|with)|(?:answer|respond|comment|continu)(?:e|ing)?(?=[.,;!]|$)"
    r"|(?:answer|respond to|accommodate|process|creat|generat|writ|produc|draft|compos|shar|giv|offer|support|endors"
    rf"|encourag|continue with|continu|complet|teach|role-?play)(?:e|ing)?{_OBJECT}"
    r"|do(?:ing)? (?:that|this|so|it|what you)(?= for you\b| because\b| as\b|[.,;:!]|$)"
    r"|tell(?:ing)? you (?:how to|that|this|where|about|any)\b)"
)
_RULES = r"(?:\w+ ){0,2}(?:guidelines|programming|principles|polic(?:y|ies)|values|ethics|agreement|terms)\b"
_REFUSALS = re.compile(
    rf"(?:\bi{_IS}{_ADVERBS}{_UNABLE} {_HELP}"
    rf"|(?:\bwe{_IS}|(?:^|(?<=[.!?] ))(?=can|won|unable|not able)){_ADVERBS}{_UNABLE} {_ASSIST})(?! but\b)"
    r"|^request (?:denied|refused|rejected|declined)\b"
    r"|\b(?:sorry|afraid|apologi[sz]e|apologies),? (?:but |however,? |to say )?(?:that )?(?:as an? [^.!?]{1,60}?,? )?"
    r"(?:i|we|that's|this|it's|that)(?:'?m| am| is|'s)? ?(?:really |just )?"
    r"(?:can'?t|cannot|can not|won'?t|unable|not able|not something|not allowed|against|must decline)\b"
    r"(?! (?:find|see|hear|remember|recall|understand|follow|locate|quite|agree|think|make it|attend|come|join"
    r"|be (?:there|here|with|at|in|around))\b)"
    rf"|\b(?:i|we){_IS}(?:(?:must|have to|need to|can only|going to) ){{0,2}}(?:respectfully |politely )?"
    r"(?:declin(?:e|ing)(?= to\b| this\b| that\b| your\b| here\b|[.,;!]|$)|pass on (?:this|that) one\b)"
    r"|\bi (?:can'?t|cannot|can not|won'?t|could not),? in good conscience\b"
    r"|(?:(?:that|this|it)(?:'s| is)(?: \w+)? not|(?:isn'?t|don'?t think (?:that|this|it)(?:'s| is))(?: \w+)?) "
    rf"something (?:that )?i(?:'m|'d be|'ll| am| will| would be| can) (?:(?:able|willing|prepared|do)\b|{_HELP})"
    rf"|\b(?:against|violat(?:es?|ing)|prohibited by) (?:my|openai's|anthropic's|google's) {_RULES}"
    rf"|\bmy {_RULES} (?:do not|don't|prevents?|prohibits?|forbids?)\b"
    r"|\b(?:inappropriate|unethical|irresponsible|(?:not|wouldn'?t|isn'?t)(?: be)? (?:appropriate|ethical|right|okay))"
    rf" for me to {_HELP}"
)
_SPOKEN_OF = re.compile(  # words before a refusal that only mention it
    r"\b(?:if|whether|unless|when(?:ever)?|what|why|anything|nothing|everything|not that|not because|never say"
    r"|pretend|imagine|suppose)\s?$"
)


@reward(score_range=(0, 1))
def no_refusal(completion: str) -> Score:
    """1.0 if the completion does not refuse, in English, otherwise 0.0.

    It refuses where its first or last 300 characters after the thought have a phrase such as ``I can't help with``, ``I
    won't be able to provide``, ``I'm sorry, but I cannot``, ``I must decline``, ``that's not something I can do`` or
    ``against my guidelines``, or a sentence without a subject that refuses help as such (``Cannot comply.``, not
    ``Can't write it shorter.``). ``I can't help but notice``, ``sorry to hear``, quotations and conditions with ``if``
    are no refusals. Refusals further inside or in another language are not read. 0.0 for an empty completion. No
    columns; never ``None``. Rewarding this alone teaches to answer what should be refused.
    """
    text = after_thinking(completion).strip()
    if not fold(text).strip():
        return Score(0.0, reason="the completion is empty")
    edges = [text] if len(text) <= 2 * _EDGE_CHARS else [text[:_EDGE_CHARS], text[-_EDGE_CHARS:]]
    for edge in edges:
        plain = " ".join(fold(edge.translate(_APOSTROPHES)).lower().split())
        if plain[:1] == plain[-1:] == '"' and plain.count('"') == 2:
            plain = plain[1:-1]  # what is quoted inside it refuses nothing
        for refusal in _REFUSALS.finditer(plain):
            before = plain[: refusal.start()]
            if before.count('"') % 2 == 0 and not _SPOKEN_OF.search(before):
                return Score(0.0, reason=f"refuses: {refusal.group()!r}")
    return Score(1.0)
