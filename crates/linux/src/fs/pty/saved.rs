//! Pseudoterminals in snapshots.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Buffers, End, MOST, Pty, Ptys, Termios};
use crate::fs::objects::Level;

/// A pseudoterminal without its ends.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedPty {
    number: u32,
    locked: bool,
    termios: Termios,
    size: [u16; 4],
    session: u32,
    foreground: u32,
    buffers: Buffers,
    used: bool,
}

impl Pty {
    /// Returns what a snapshot has of it.
    pub(crate) fn saved(&self) -> SavedPty {
        let held = self.buffers.borrow();
        let buffers = Buffers {
            input: held.input.clone(),
            line: held.line.clone(),
            literal: held.literal,
            output: held.output.clone(),
            before: held.before,
        };
        SavedPty {
            number: self.number,
            locked: self.locked.get(),
            termios: self.termios.get(),
            size: self.size.get(),
            session: self.session.get(),
            foreground: self.foreground.get(),
            buffers,
            used: self.used.get(),
        }
    }

    /// Shows whether there is something to read, once all ends are open again.
    pub(crate) fn complete(&self) {
        self.update();
    }
}

impl Ptys {
    /// Adds a pseudoterminal from a snapshot, without ends.
    ///
    /// # Errors
    /// `EINVAL` when its number is in use or too large; when the host is out of descriptors.
    pub(crate) fn restore(&mut self, saved: SavedPty) -> Result<Rc<Pty>, Errno> {
        if saved.number >= MOST || self.open.contains_key(&saved.number) {
            return Err(Errno::INVAL);
        }
        let pty = Rc::new(Pty {
            number: saved.number,
            locked: Cell::new(saved.locked),
            termios: Cell::new(saved.termios),
            size: Cell::new(saved.size),
            session: Cell::new(saved.session),
            foreground: Cell::new(saved.foreground),
            buffers: RefCell::new(saved.buffers),
            master: Level::new(false)?,
            terminal: Level::new(false)?,
            master_open: Cell::new(false),
            hung_up: Rc::clone(&self.hung_up),
            terminals: Cell::new(0),
            used: Cell::new(saved.used),
        });
        self.open.insert(pty.number, Rc::downgrade(&pty));
        Ok(pty)
    }
}

impl End {
    /// Opens an end of a pseudoterminal from a snapshot.
    pub(crate) fn restored(pty: &Rc<Pty>, is_master: bool) -> End {
        if is_master {
            pty.master_open.set(true);
        } else {
            pty.terminals.set(pty.terminals.get() + 1);
        }
        End { pty: Rc::clone(pty), is_master }
    }
}
