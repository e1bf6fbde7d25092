//! Programs that share the host's terminal with other output.

use std::fmt;

use rustix::fd::BorrowedFd;

use crate::guest::Guest;

/// Observer of the terminal, which shares it with programs. Called before a program writes to it or waits for input, and after it
/// has read; the argument is whether the cursor is then at the beginning of a line.
pub type TerminalWatch = Box<dyn FnMut(bool)>;

/// The observer, if any.
#[derive(Default)]
pub(crate) struct Terminal(Option<TerminalWatch>);

impl Terminal {
    /// Sets the observer.
    pub(crate) fn watch(&mut self, watch: TerminalWatch) {
        self.0 = Some(watch);
    }

    /// Notifies the observer that a program uses `file`, if that is a terminal.
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
    /// Sets the observer of programs' use of the host's terminal.
    pub fn watch_terminal(&mut self, watch: TerminalWatch) {
        self.system.terminal.watch(watch);
    }
}
