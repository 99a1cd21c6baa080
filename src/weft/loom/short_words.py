"""Words that boundary repair must know: short ones that are whole, and pairs that are one word."""

from __future__ import annotations

from typing import Final

_SHORT: Final = """
a i am an as at ad ah aw ax be by do eh go ha he hi ho id if in is it la lo ma me mi mm mr ms my
no of oh ok on or ow ox pa pi re sh so ti to tv uh um up us vs we ye yo ace act add ado age ago
aid ail aim air ale all and ant any ape apt arc are ark arm art ash ask ate awe awl axe bad bag
ban bar bat bay bed bee beg bet bid big bin bit boa bob bog bow box boy bra bud bug bum bun bus
but buy bye cab can cap car cat cod cog con coo cop cot cow coy cry cub cue cup cut dab dad dam
day den dew did die dig dim din dip doe dog don dot dry dub dud due dug dye ear eat ebb eel egg
ego elf elk elm emu end era eve eye fad fan far fat fax fed fee few fig fin fir fit fix flu fly
foe fog for fox fry fun fur gag gap gas gel gem get gig gin god got gum gun gut guy gym had hag
ham has hat hay hem hen her hew hey hid him hip his hit hog hop hot how hub hue hug hum hut ice
icy ill ink inn ion ire its ivy jab jam jar jaw jay jet jig job jog jot joy jug keg key kid kin
kit lab lad lag lap law lay led leg let lid lie lip lit log lot low lye mad man map mar mat maw
may men met mix mob mom mop mow mud mug mum nab nag nap net new nil nip nod nor not now nut oak
oar oat odd off oil old one opt orb ore our out owe owl own pad pal pan par pat paw pay pea peg
pen per pet pie pig pin pit ply pod pop pot pro pub pun pup put rag ram ran rap rat raw ray red
rib rid rig rim rip rob rod roe rot row rub rug rum run rut rye sac sad sag sap sat saw say sea
see set sew sex she shy sin sip sir sit six ski sky sly sob sod son sow soy spa spy sub sue sum
sun tab tag tan tap tar tax tea ten the thy tic tie tin tip toe ton too top tow toy try tub tug
two urn use van vat vet via vie vow wag war was wax way web wed wee wet who why wig win wit woe
wok won woo wry yak yam yap yes yet yew you zap zip zoo hmm nth pst shh etc km cm kg mg ml lb ft
hr pm pc cd dr jr sr st mph rpm
"""
_JOINED: Final = """
anything everything something nothing anywhere everywhere somewhere myself himself herself itself
yourself yourselves ourselves themselves therefore throughout without together towards beneath
underneath understand understood forgotten yesterday tomorrow midnight perhaps although children
remember another
"""

SHORT_WORDS: Final = frozenset(_SHORT.split())
"""English words of up to three letters; all others of that length may be the beginning of one."""

COMPOUNDS: Final = frozenset(_JOINED.split())
"""Words whose halves, torn apart by a token's end, hardly ever stand side by side as words.

Not `anyone`, `nobody` or `inside`: their halves do (`any one of them`, `no body was found`).
"""

SECOND_HALVES: Final = frozenset(word[at:] for word in COMPOUNDS for at in range(1, len(word)))
"""What may be torn off one of them."""
