//! Programs at the host's terminal, which others may write to as well.

use std::fmt;

use rustix::fd::BorrowedFd;

use crate::guest::Guest;

/// Observer of the terminal, which writes to it as well. Called whenever a program is about to write there or to wait for input, and
/// when it has read; with whether the cursor is at the beginning of a line afterwards.
pub type TerminalWatch = Box<dyn FnMut(bool)>;

/// Who is told, if anybody.
#[derive(Default)]
pub(crate) struct Terminal(Option<TerminalWatch>);

impl Terminal {
    /// From now on `watch` is told.
    pub(crate) fn watch(&mut self, watch: TerminalWatch) {
        self.0 = Some(watch);
    }

    /// Tells that a program uses `file`, if that is a terminal.
    pub(crate) fn used(&mut self, file: BorrowedFd<'_>, ends_line: bool) {
        if let Some(watch) = &mut self.0
            && rustix::termios::isatty(file)
        {
            watch(ends_line);
        }
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Terminal").field(&self.0.is_some()).finish()
    }
}

impl Guest {
    /// Lets `watch` know of what programs do at the host's terminal, which it writes to as well.
    pub fn watch_terminal(&mut self, watch: TerminalWatch) {
        self.system.terminal.watch(watch);
    }
}
