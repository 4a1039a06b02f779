"""The program ``smoothctl``, which is ``python -m smoothctl`` too."""

import signal

# Until the command line is imported and says what Ctrl-C does, it ends the program without a word.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from smoothctl.cli import main

if __name__ == "__main__":
    main()
