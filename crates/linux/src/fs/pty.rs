//! Pseudoterminals (pty(7)): the two ends and the line discipline between them (termios(3)). They are the simulator's own: nothing of
//! the host's terminals can be reached through them.

mod saved;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::fs::objects::Level;
use crate::signal::number::{SIGINT, SIGQUIT, SIGTSTP};
pub(crate) use saved::SavedPty;

/// Bytes that wait for a reader until writers wait, too.
const ROOM: usize = 1 << 16;

/// Maximum length of a line (`N_TTY_BUF_SIZE`); what exceeds it is dropped.
const LINE: usize = 4096;

/// Maximum number of pseudoterminals of a run.
const MOST: u32 = 1024;

/// Bits of the modes (Linux `asm-generic/termbits.h`).
pub(crate) mod mode {
    pub const ISTRIP: u32 = 0o40;
    pub const INLCR: u32 = 0o100;
    pub const IGNCR: u32 = 0o200;
    pub const ICRNL: u32 = 0o400;
    pub const IXON: u32 = 0o2000;
    pub const OPOST: u32 = 1;
    pub const ONLCR: u32 = 4;
    pub const OCRNL: u32 = 0o10;
    pub const ISIG: u32 = 1;
    pub const ICANON: u32 = 2;
    pub const ECHO: u32 = 0o10;
    pub const ECHOE: u32 = 0o20;
    pub const ECHOK: u32 = 0o40;
    pub const ECHONL: u32 = 0o100;
    pub const NOFLSH: u32 = 0o200;
    pub const TOSTOP: u32 = 0o400;
    pub const ECHOCTL: u32 = 0o1000;
    pub const ECHOKE: u32 = 0o4000;
    pub const IEXTEN: u32 = 0o100_000;
}
use mode::*;

/// Places of the special characters.
mod place {
    pub const INTR: usize = 0;
    pub const QUIT: usize = 1;
    pub const ERASE: usize = 2;
    pub const KILL: usize = 3;
    pub const EOF: usize = 4;
    pub const TIME: usize = 5;
    pub const MIN: usize = 6;
    pub const START: usize = 8;
    pub const STOP: usize = 9;
    pub const SUSP: usize = 10;
    pub const EOL: usize = 11;
    pub const WERASE: usize = 14;
    pub const LNEXT: usize = 15;
    pub const EOL2: usize = 16;
}

/// The kernel's `struct termios`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Termios {
    pub input: u32,
    pub output: u32,
    pub control: u32,
    pub local: u32,
    pub line: u8,
    pub codes: [u8; 19],
}

impl Termios {
    /// Returns the modes of a new terminal (`tty_std_termios`): 38400 baud, 8 bits.
    fn new() -> Termios {
        Termios {
            input: ICRNL | IXON,
            output: OPOST | ONLCR,
            control: 0o277,
            local: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            line: 0,
            codes: [3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0],
        }
    }

    fn has(&self, local: u32) -> bool {
        self.local & local != 0
    }

    /// Returns whether a byte is the special character at a place; 0 disables it.
    fn is(&self, byte: u8, place: usize) -> bool {
        byte != 0 && self.codes[place] == byte
    }

    /// Returns how a read waits without canonical mode: for at least one byte, and how long, in ns; 0: for ever.
    pub(crate) fn patience(&self) -> (bool, u64) {
        (self.codes[place::MIN] > 0, u64::from(self.codes[place::TIME]) * 100_000_000)
    }

    /// Returns whether input is read line by line.
    pub(crate) fn is_canonical(&self) -> bool {
        self.has(ICANON)
    }
}

/// Bytes on their way.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Buffers {
    /// For the terminal's reader: lines in canonical mode, of which an empty one is an end of file.
    input: VecDeque<Vec<u8>>,
    /// The line that is being typed.
    line: Vec<u8>,
    /// The next character has no special meaning.
    literal: bool,
    /// For the master.
    output: VecDeque<u8>,
    /// Length of `output` before the current write of the master.
    before: usize,
}

/// A pseudoterminal.
#[derive(Debug)]
pub(crate) struct Pty {
    pub number: u32,
    /// The terminal cannot be opened yet (`unlockpt`).
    pub locked: Cell<bool>,
    pub termios: Cell<Termios>,
    /// Rows, columns, and pixels of both.
    pub size: Cell<[u16; 4]>,
    /// The session that it controls, and its foreground process group; 0: none.
    pub session: Cell<u32>,
    pub foreground: Cell<u32>,
    buffers: RefCell<Buffers>,
    master: Level,
    terminal: Level,
    master_open: Cell<bool>,
    /// Where its end is noted if it controls a session then.
    hung_up: Rc<RefCell<Vec<HungUp>>>,
    /// Open file descriptions of the terminal, and whether there has been one.
    terminals: Cell<u32>,
    used: Cell<bool>,
}

/// An end of a pseudoterminal that is open.
#[derive(Debug)]
pub(crate) struct End {
    pub pty: Rc<Pty>,
    pub is_master: bool,
}

impl End {
    /// Returns the level of its own readiness.
    pub(crate) fn level(&self) -> &Level {
        self.pty.level(self.is_master)
    }

    /// Opens a terminal.
    ///
    /// # Errors
    /// `EIO` while it is locked, or when its master has been closed.
    pub(crate) fn terminal(pty: &Rc<Pty>) -> Result<End, Errno> {
        if pty.locked.get() || !pty.master_open.get() {
            return Err(Errno::IO);
        }
        pty.terminals.set(pty.terminals.get() + 1);
        pty.used.set(true);
        pty.update();
        Ok(End { pty: Rc::clone(pty), is_master: false })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.is_master {
            self.pty.master_open.set(false);
            self.pty.hang_up();
        } else {
            self.pty.terminals.set(self.pty.terminals.get() - 1);
        }
        self.pty.update();
    }
}

/// What a read returns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Bytes(Vec<u8>),
    /// There is nothing yet.
    Wait,
}

impl Pty {
    /// Returns the level of an end's readiness.
    pub(crate) fn level(&self, is_master: bool) -> &Level {
        if is_master { &self.master } else { &self.terminal }
    }

    /// Ends its control of a session, whose processes learn of it after the system call.
    fn hang_up(&self) {
        let (session, foreground) = self.release();
        if session != 0 {
            self.hung_up.borrow_mut().push(HungUp { session, foreground });
        }
    }

    /// Ends its control of a session; returns that and its foreground process group.
    pub(crate) fn release(&self) -> (u32, u32) {
        (self.session.take(), self.foreground.take())
    }

    /// Returns whether output of processes in the background stops them.
    pub(crate) fn stops_output(&self) -> bool {
        self.termios.get().has(TOSTOP)
    }

    /// Returns whether there is something to read, or will never be.
    fn update(&self) {
        let buffers = self.buffers.borrow();
        self.terminal.set(!buffers.input.is_empty() || !self.master_open.get());
        self.master.set(!buffers.output.is_empty() || (self.used.get() && self.terminals.get() == 0));
    }

    /// Reads at most `most` bytes from the master.
    ///
    /// # Errors
    /// `EIO` when no terminal is open any more.
    pub(crate) fn read_master(&self, most: usize) -> Result<Read, Errno> {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.output.is_empty() {
            let closed = self.used.get() && self.terminals.get() == 0;
            return if closed { Err(Errno::IO) } else { Ok(Read::Wait) };
        }
        let count = most.min(buffers.output.len());
        let bytes = buffers.output.drain(..count).collect();
        drop(buffers);
        self.update();
        Ok(Read::Bytes(bytes))
    }

    /// Reads at most `most` bytes from the terminal: in canonical mode, no more than a line.
    pub(crate) fn read_terminal(&self, most: usize) -> Read {
        let mut buffers = self.buffers.borrow_mut();
        let mut bytes = Vec::new();
        while bytes.len() < most {
            let Some(first) = buffers.input.front_mut() else { break };
            let count = first.len().min(most - bytes.len());
            bytes.extend(first.drain(..count));
            if !first.is_empty() {
                break;
            }
            buffers.input.pop_front();
            if self.termios.get().is_canonical() {
                drop(buffers);
                self.update();
                return Read::Bytes(bytes);
            }
        }
        drop(buffers);
        self.update();
        if bytes.is_empty() && self.master_open.get() { Read::Wait } else { Read::Bytes(bytes) }
    }

    /// Writes to the terminal: the master reads it. Returns how much there was room for.
    ///
    /// # Errors
    /// `EIO` when the master has been closed.
    pub(crate) fn write_terminal(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if !self.master_open.get() {
            return Err(Errno::IO);
        }
        let mut buffers = self.buffers.borrow_mut();
        let mut done = 0;
        while done < bytes.len() && buffers.output.len() < ROOM {
            self.put(&mut buffers, bytes[done]);
            done += 1;
        }
        drop(buffers);
        self.update();
        Ok(done)
    }

    /// Types bytes at the master. Returns how many there was room for, and the signals for the foreground process group.
    pub(crate) fn write_master(&self, bytes: &[u8]) -> (usize, Vec<u32>) {
        let (mut done, mut signals) = (0, Vec::new());
        let mut buffers = self.buffers.borrow_mut();
        buffers.before = buffers.output.len();
        // An end of file takes room, too.
        let held: usize = buffers.input.iter().map(|chunk| chunk.len().max(1)).sum();
        while done < bytes.len() && held + done < ROOM && buffers.output.len() < ROOM {
            self.type_byte(&mut buffers, bytes[done], &mut signals);
            done += 1;
        }
        drop(buffers);
        self.update();
        (done, signals)
    }

    /// Puts a byte of output on its way to the master.
    fn put(&self, buffers: &mut Buffers, byte: u8) {
        let output = self.termios.get().output;
        match byte {
            b'\n' if output & (OPOST | ONLCR) == OPOST | ONLCR => buffers.output.extend(b"\r\n"),
            b'\r' if output & (OPOST | OCRNL) == OPOST | OCRNL => buffers.output.push_back(b'\n'),
            _ => buffers.output.push_back(byte),
        }
    }

    fn echo(&self, buffers: &mut Buffers, byte: u8) {
        let termios = self.termios.get();
        if !termios.has(ECHO) {
            if byte == b'\n' && termios.has(ECHONL) && termios.is_canonical() {
                self.put(buffers, byte);
            }
            return;
        }
        if termios.has(ECHOCTL) && shown_with_caret(byte) {
            self.put(buffers, b'^');
            self.put(buffers, byte ^ 0x40);
        } else {
            self.put(buffers, byte);
        }
    }

    fn type_byte(&self, buffers: &mut Buffers, byte: u8, signals: &mut Vec<u32>) {
        let termios = self.termios.get();
        let mut byte = if termios.input & ISTRIP != 0 { byte & 0x7f } else { byte };
        if std::mem::take(&mut buffers.literal) {
            return self.accept(buffers, byte);
        }
        match byte {
            b'\r' if termios.input & IGNCR != 0 => return,
            b'\r' if termios.input & ICRNL != 0 => byte = b'\n',
            b'\n' if termios.input & INLCR != 0 => byte = b'\r',
            _ => {}
        }
        // Output is never held back, so that the characters for that have no further effect.
        if termios.input & IXON != 0 && (termios.is(byte, place::START) || termios.is(byte, place::STOP)) {
            return;
        }
        let kinds = [(place::INTR, SIGINT), (place::QUIT, SIGQUIT), (place::SUSP, SIGTSTP)];
        if let Some(&(_, signal)) = kinds.iter().find(|&&(place, _)| termios.has(ISIG) && termios.is(byte, place)) {
            if !termios.has(NOFLSH) {
                (buffers.line, buffers.input) = (Vec::new(), VecDeque::new());
                // What was typed with it is not echoed.
                let before = buffers.before;
                buffers.output.truncate(before);
            }
            self.echo(buffers, byte);
            signals.push(signal);
            return;
        }
        if !termios.is_canonical() {
            return self.accept(buffers, byte);
        }
        self.edit(buffers, byte);
    }

    /// A byte that is typed in canonical mode.
    fn edit(&self, buffers: &mut Buffers, byte: u8) {
        let termios = self.termios.get();
        let extended = termios.has(IEXTEN);
        if termios.is(byte, place::ERASE) {
            self.erase(buffers, 1);
        } else if termios.is(byte, place::WERASE) && extended {
            let spaces = buffers.line.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
            let word = buffers.line.iter().rev().skip(spaces).take_while(|byte| !byte.is_ascii_whitespace()).count();
            self.erase(buffers, spaces + word);
        } else if termios.is(byte, place::KILL) {
            let all = buffers.line.len();
            self.erase(buffers, all);
        } else if termios.is(byte, place::LNEXT) && extended {
            buffers.literal = true;
            if termios.has(ECHO) && termios.has(ECHOCTL) {
                buffers.output.extend(b"^\x08");
            }
        } else if termios.is(byte, place::EOF) {
            let line = std::mem::take(&mut buffers.line);
            buffers.input.push_back(line);
        } else if byte == b'\n' || termios.is(byte, place::EOL) || (termios.is(byte, place::EOL2) && extended) {
            self.echo(buffers, byte);
            let mut line = std::mem::take(&mut buffers.line);
            line.push(byte);
            buffers.input.push_back(line);
        } else {
            self.accept(buffers, byte);
        }
    }

    /// Takes back the last characters of the line that is being typed.
    fn erase(&self, buffers: &mut Buffers, count: usize) {
        let termios = self.termios.get();
        for _ in 0..count {
            let Some(byte) = buffers.line.pop() else { break };
            let width = if termios.has(ECHOCTL) && shown_with_caret(byte) { 2 } else { 1 };
            if termios.has(ECHO) && termios.has(ECHOE) {
                for _ in 0..width {
                    buffers.output.extend(b"\x08 \x08");
                }
            }
        }
    }

    /// A byte without special meaning.
    fn accept(&self, buffers: &mut Buffers, byte: u8) {
        if self.termios.get().is_canonical() {
            // The last place is for the end of the line.
            if buffers.line.len() + 1 < LINE {
                self.echo(buffers, byte);
                buffers.line.push(byte);
            }
            return;
        }
        self.echo(buffers, byte);
        match buffers.input.back_mut() {
            Some(chunk) if !chunk.is_empty() => chunk.push(byte),
            _ => buffers.input.push_back(vec![byte]),
        }
    }

    /// Changes the modes. Leaving canonical mode makes the line that is being typed readable.
    pub(crate) fn set_termios(&self, termios: Termios, discards_input: bool) {
        if discards_input {
            self.flush(true, false);
        }
        if !termios.is_canonical() {
            let mut buffers = self.buffers.borrow_mut();
            let line = std::mem::take(&mut buffers.line);
            // Ends of file mean nothing there.
            buffers.input.retain(|chunk| !chunk.is_empty());
            if !line.is_empty() {
                buffers.input.push_back(line);
            }
        }
        self.termios.set(termios);
        self.update();
    }

    /// Discards what has not been read by the terminal or by the master.
    pub(crate) fn flush(&self, input: bool, output: bool) {
        let mut buffers = self.buffers.borrow_mut();
        if input {
            (buffers.line, buffers.input) = (Vec::new(), VecDeque::new());
        }
        if output {
            buffers.output.clear();
        }
        drop(buffers);
        self.update();
    }

    /// Returns how many bytes an end can read.
    pub(crate) fn readable(&self, is_master: bool) -> usize {
        let buffers = self.buffers.borrow();
        if is_master { buffers.output.len() } else { buffers.input.iter().map(Vec::len).sum() }
    }
}

/// Returns whether a control character is echoed as `^X`.
fn shown_with_caret(byte: u8) -> bool {
    byte == 0x7f || (byte < 0x20 && byte != b'\n' && byte != b'\t')
}

/// A session that has lost its terminal, and the process group that was in the foreground.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HungUp {
    pub session: u32,
    pub foreground: u32,
}

/// The pseudoterminals of a run, as long as they are open.
#[derive(Default)]
pub(crate) struct Ptys {
    open: BTreeMap<u32, Weak<Pty>>,
    hung_up: Rc<RefCell<Vec<HungUp>>>,
}

impl Ptys {
    /// Creates a pseudoterminal with the lowest free number and opens its master.
    ///
    /// # Errors
    /// `ENOSPC` when there are as many as there may be; when the host is out of descriptors.
    pub(crate) fn open(&mut self) -> Result<End, Errno> {
        self.open.retain(|_, pty| pty.strong_count() > 0);
        let number = (0..MOST).find(|number| !self.open.contains_key(number)).ok_or(Errno::NOSPC)?;
        let pty = Rc::new(Pty {
            number,
            locked: Cell::new(true),
            termios: Cell::new(Termios::new()),
            size: Cell::default(),
            session: Cell::new(0),
            foreground: Cell::new(0),
            buffers: RefCell::default(),
            master: Level::new(false)?,
            terminal: Level::new(false)?,
            master_open: Cell::new(true),
            terminals: Cell::new(0),
            used: Cell::new(false),
            hung_up: Rc::clone(&self.hung_up),
        });
        self.open.insert(number, Rc::downgrade(&pty));
        Ok(End { pty, is_master: true })
    }

    /// Returns the pseudoterminal with this number, while its master is open.
    pub(crate) fn get(&self, number: u32) -> Option<Rc<Pty>> {
        self.open.get(&number).and_then(Weak::upgrade).filter(|pty| pty.master_open.get())
    }

    /// Takes the sessions that have lost their terminals since the last call.
    pub(crate) fn take_hung_up(&mut self) -> Vec<HungUp> {
        std::mem::take(&mut *self.hung_up.borrow_mut())
    }

    /// Iterates over the numbers of those whose master is open.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.open.keys().copied().filter(|&number| self.get(number).is_some())
    }

    /// Returns the terminal that controls a session.
    pub(crate) fn of_session(&self, session: u32) -> Option<Rc<Pty>> {
        self.open.values().filter_map(Weak::upgrade).find(|pty| pty.session.get() == session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (End, End) {
        let master = Ptys::default().open().expect("opened");
        assert_eq!(End::terminal(&master.pty).err(), Some(Errno::IO), "it is locked");
        master.pty.locked.set(false);
        let terminal = End::terminal(&master.pty).expect("opened");
        (master, terminal)
    }

    fn bytes(read: Read) -> String {
        match read {
            Read::Bytes(bytes) => String::from_utf8(bytes).expect("text"),
            Read::Wait => "(wait)".to_owned(),
        }
    }

    #[test]
    fn lines_are_edited_and_echoed() {
        let (master, terminal) = pair();
        let pty = &master.pty;
        assert_eq!(pty.write_master(b"ab c\x7fd\x17e\r\x04x\x15y\n"), (14, vec![]));
        assert_eq!(bytes(pty.read_terminal(100)), "ab e\n");
        assert_eq!(bytes(pty.read_terminal(100)), "");
        assert_eq!(bytes(pty.read_terminal(1)), "y");
        assert_eq!(bytes(pty.read_terminal(100)), "\n");
        assert_eq!(bytes(pty.read_terminal(100)), "(wait)");
        let echo = "ab c\x08 \x08d\x08 \x08e\r\nx\x08 \x08y\r\n";
        assert_eq!(pty.read_master(100).map(bytes), Ok(echo.to_owned()));
        drop(terminal);
        assert_eq!(pty.read_master(100), Err(Errno::IO));
    }

    #[test]
    fn without_canonical_mode_bytes_are_read_as_they_come() {
        let (master, _terminal) = pair();
        let pty = &master.pty;
        let termios = pty.termios.get();
        pty.write_master(b"ty");
        pty.set_termios(Termios { local: 0, input: 0, ..termios }, false);
        assert_eq!(pty.write_master(b"ped\r\x03\x04"), (6, vec![]));
        assert_eq!(bytes(pty.read_terminal(4)), "type");
        assert_eq!(bytes(pty.read_terminal(100)), "d\r\x03\x04");
        pty.set_termios(termios, false);
        assert_eq!(pty.write_master(b"lost\x03\x1akept\n"), (11, vec![SIGINT, SIGTSTP]));
        assert_eq!(bytes(pty.read_terminal(100)), "kept\n");
    }

    #[test]
    fn nobody_can_make_a_terminal_hold_more_than_its_room() {
        let (master, terminal) = pair();
        let pty = &master.pty;
        let many = vec![b'\n'; 3 * ROOM];
        assert!(pty.write_master(&many).0 <= ROOM);
        pty.flush(true, true);
        assert!(pty.write_terminal(&many).is_ok_and(|done| done <= ROOM));
        assert_eq!(pty.write_terminal(b"x"), Ok(0));
        let pty = Rc::clone(pty);
        drop(master);
        assert_eq!(pty.write_terminal(b"x"), Err(Errno::IO));
        assert_eq!(bytes(pty.read_terminal(1)), "");
        drop(terminal);
    }
}
