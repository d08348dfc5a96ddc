"""One file per kind of hostile input: `strategy()` makes the cases, `check(place, case)` tries one, `WARM` is harmless.

`check` returns nothing, and raises Failure when the product did not hold. Allowed is a ValueError or an OSError with
one sentence from the library, an exit status with one line on standard error from the command line, and a page that
is drawn or says why not.
"""
