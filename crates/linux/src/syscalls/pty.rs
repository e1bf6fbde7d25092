//! Pseudoterminals: opening, transfer, and `ioctl_tty(2)`.

use std::rc::Rc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::files::limit;
use super::streams::{check_writable, gather, scatter};
use super::transfer::{CHUNK, Piece};
use super::{Args, Result};
use crate::abi::open::open_flags;
use crate::budget;
use crate::fs::files::OpenFile;
use crate::fs::objects::Object;
use crate::fs::pty::{End, Pty, Read, Termios};
use crate::fs::terminals::{self, AGAIN_NS};
use crate::fs::vfs::Origin;
use crate::fs::vfs::tree::{Kind, Node};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::signal::number::{SIGTTIN, SIGTTOU, SIGWINCH};
use crate::signal::stop::send_to_group;

type Outcome<T> = std::result::Result<T, Errno>;

/// Opens `/dev/ptmx`, or the terminal with a number, and returns its descriptor.
pub(super) fn open(k: &mut Kernel<'_>, node: Node, flags: OFlags) -> Result {
    let end = match node.kind {
        Kind::Terminal(number) => {
            let pty = k.system.ptys.get(number).ok_or(Errno::NXIO)?;
            let end = End::terminal(&pty)?;
            if !flags.contains(OFlags::NOCTTY) {
                control(k, &pty);
            }
            end
        }
        _ => k.system.ptys.open()?,
    };
    insert(k, end, node, flags)
}

/// Opens the controlling terminal of the process, if it is a pseudoterminal.
pub(super) fn open_controlling(k: &mut Kernel<'_>, flags: OFlags) -> Option<Result> {
    let pty = k.system.ptys.of_session(k.process.session)?;
    let node = node_of(&pty);
    Some(End::terminal(&pty).and_then(|end| insert(k, end, node, flags)))
}

fn node_of(pty: &Pty) -> Node {
    Node { path: format!("/dev/pts/{}", pty.number).into_bytes(), kind: Kind::Terminal(pty.number) }
}

fn insert(k: &mut Kernel<'_>, end: End, node: Node, flags: OFlags) -> Result {
    let (host, channel) = k.new_object(Object::Pty(end), budget::PTY)?;
    rustix::fs::fcntl_setfl(&host, OFlags::RDWR | flags & OFlags::NONBLOCK)?;
    let (file, limit) = (OpenFile::new(host, Origin::Simulated(node)), limit(k));
    Ok(k.process.files.insert_channel(file, Some(channel), flags.contains(OFlags::CLOEXEC), limit)? as u64)
}

/// Makes a terminal the controlling one of a session without one, when its leader opens it.
fn control(k: &Kernel<'_>, pty: &Pty) {
    let process = &*k.process;
    let leads = process.session == process.pid && k.system.ptys.of_session(process.session).is_none();
    if leads && pty.session.get() == 0 {
        pty.session.set(process.session);
        pty.foreground.set(process.group);
    }
}

/// Returns the end that a descriptor is for.
fn end_of(k: &Kernel<'_>, fd: i32) -> Option<(Rc<Pty>, bool)> {
    match k.process.files.object(fd) {
        Some(Object::Pty(end)) => Some((Rc::clone(&end.pty), end.is_master)),
        _ => None,
    }
}

fn is_nonblocking(k: &Kernel<'_>, fd: i32) -> Outcome<bool> {
    Ok(rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?.contains(OFlags::NONBLOCK))
}

/// Reads what there is, waiting until there is something.
pub(super) fn read(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    let (pty, is_master) = end_of(k, fd).ok_or(Errno::BADF)?;
    let most = pieces.iter().map(|piece| piece.len).sum::<u64>().min(CHUNK as u64) as usize;
    check_writable(k, pieces)?;
    if most == 0 {
        return Ok(0);
    }
    if !is_master && !terminals::may_use(k, &pty, SIGTTIN)? {
        return Ok(0);
    }
    let read = if is_master { pty.read_master(most)? } else { pty.read_terminal(most) };
    if let Read::Bytes(bytes) = read {
        scatter(k, pieces, 0, &bytes)?;
        return Ok(bytes.len() as u64);
    }
    if is_nonblocking(k, fd)? {
        return Err(Errno::AGAIN);
    }
    let mut until_ns = FOR_EVER;
    let termios = pty.termios.get();
    if !is_master
        && !termios.is_canonical()
        && let (false, patience_ns) = termios.patience()
    {
        until_ns = k.thread.time_limit(k.system.now_ns.saturating_add(patience_ns));
        if until_ns <= k.system.now_ns {
            return Ok(0);
        }
    }
    let interests = vec![(fd, rustix::event::PollFlags::IN)];
    k.block(Blocked { restart: true, until_ns, ..Blocked::new(Wait::Files(interests)) });
    Ok(0)
}

/// Writes everything, waiting while there is no room.
pub(super) fn write(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    let (pty, is_master) = end_of(k, fd).ok_or(Errno::BADF)?;
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    let mut done = k.thread.resumed.map_or(0, |resumed| resumed.progress);
    if !is_master && done == 0 && pty.stops_output() && !terminals::may_use(k, &pty, SIGTTOU)? {
        return Ok(0);
    }
    while done < total {
        let bytes = gather(k, pieces, done, CHUNK)?;
        let written = if is_master {
            let (written, signals) = pty.write_master(&bytes);
            signals.into_iter().for_each(|signal| send_to_group(k, pty.foreground.get(), signal));
            written
        } else {
            match pty.write_terminal(&bytes) {
                Err(_) if done > 0 => return Ok(done),
                written => written?,
            }
        };
        done += written as u64;
        if written == 0 {
            if is_nonblocking(k, fd)? {
                return if done > 0 { Ok(done) } else { Err(Errno::AGAIN) };
            }
            let until_ns = k.system.now_ns.saturating_add(AGAIN_NS);
            k.block(Blocked { restart: true, progress: done, until_ns, ..Blocked::new(Wait::Files(Vec::new())) });
            return Ok(0);
        }
    }
    Ok(done)
}

/// Requests (Linux `asm-generic/ioctls.h`).
mod request {
    pub const TCGETS: u32 = 0x5401;
    pub const TCSETS: u32 = 0x5402;
    pub const TCSETSW: u32 = 0x5403;
    pub const TCSETSF: u32 = 0x5404;
    pub const TCSBRK: u32 = 0x5409;
    pub const TCXONC: u32 = 0x540a;
    pub const TCFLSH: u32 = 0x540b;
    pub const TIOCEXCL: u32 = 0x540c;
    pub const TIOCNXCL: u32 = 0x540d;
    pub const TIOCSCTTY: u32 = 0x540e;
    pub const TIOCGPGRP: u32 = 0x540f;
    pub const TIOCSPGRP: u32 = 0x5410;
    pub const TIOCOUTQ: u32 = 0x5411;
    pub const TIOCSTI: u32 = 0x5412;
    pub const TIOCGWINSZ: u32 = 0x5413;
    pub const TIOCSWINSZ: u32 = 0x5414;
    pub const FIONREAD: u32 = 0x541b;
    pub const TIOCNOTTY: u32 = 0x5422;
    pub const TIOCGSID: u32 = 0x5429;
    pub const TIOCGPTPEER: u32 = 0x5441;
    pub const TIOCGPTN: u32 = 0x8004_5430;
    pub const TIOCSPTLCK: u32 = 0x4004_5431;
    pub const TIOCGPTLCK: u32 = 0x8004_5439;
}

/// Returns the result of a request to a pseudoterminal. `None`: the descriptor is for something else, or the request is one that all
/// files understand.
pub(super) fn ioctl(k: &mut Kernel<'_>, a: &Args) -> Option<Result> {
    const OF_ALL_FILES: [u32; 3] = [0x5421, 0x5450, 0x5451];
    let (pty, is_master) = end_of(k, a[0] as i32)?;
    let request = a[1] as u32;
    (!OF_ALL_FILES.contains(&request)).then(|| {
        if is_master && let Some(result) = master_ioctl(k, &pty, request, a[2]) {
            return result;
        }
        match request {
            request::TIOCSCTTY..=request::TIOCSPGRP | request::TIOCNOTTY | request::TIOCGSID => {
                job_ioctl(k, &pty, is_master, request, a[2])
            }
            _ => terminal_ioctl(k, &pty, is_master, request, a[2]),
        }
    })
}

/// Requests that only the master understands.
fn master_ioctl(k: &mut Kernel<'_>, pty: &Rc<Pty>, request: u32, argument: u64) -> Option<Result> {
    let result = match request {
        request::TIOCGPTN => user::write(k.mem, argument, pty.number),
        request::TIOCGPTLCK => user::write(k.mem, argument, u32::from(pty.locked.get())),
        request::TIOCSPTLCK => user::read::<u32>(k.mem, argument).map(|locked| pty.locked.set(locked != 0)),
        request::TIOCGPTPEER => {
            let flags = open_flags(argument as u32);
            let opened = flags.and_then(|flags| Ok((flags, End::terminal(pty)?)));
            return Some(opened.and_then(|(flags, end)| insert(k, end, node_of(pty), flags)));
        }
        _ => return None,
    };
    Some(result.map(|()| 0))
}

fn terminal_ioctl(k: &mut Kernel<'_>, pty: &Pty, is_master: bool, request: u32, argument: u64) -> Result {
    let changes = match request {
        request::TCSETS..=request::TCSETSF => true,
        request::TCSBRK..=request::TCFLSH => !is_master,
        _ => false,
    };
    if changes && !terminals::may_use(k, pty, SIGTTOU)? {
        return Ok(0);
    }
    match request {
        request::TCGETS => user::write(k.mem, argument, pty.termios.get())?,
        request::TCSETS | request::TCSETSW | request::TCSETSF => {
            let termios: Termios = user::read(k.mem, argument)?;
            pty.set_termios(termios, request == request::TCSETSF);
        }
        request::TCFLSH => {
            let (input, output) = match argument {
                0 => (true, false),
                1 => (false, true),
                2 => (true, true),
                _ => return Err(Errno::INVAL),
            };
            // What is input for one end is output of the other.
            if is_master { pty.flush(output, input) } else { pty.flush(input, output) }
        }
        request::TIOCGWINSZ => user::write(k.mem, argument, pty.size.get())?,
        request::TIOCSWINSZ => {
            let size: [u16; 4] = user::read(k.mem, argument)?;
            if pty.size.replace(size) != size {
                send_to_group(k, pty.foreground.get(), SIGWINCH);
            }
        }
        request::FIONREAD => user::write(k.mem, argument, pty.readable(is_master) as u32)?,
        request::TIOCOUTQ => user::write(k.mem, argument, 0u32)?,
        // Output is sent at once, without breaks, and never held back.
        request::TCSBRK | request::TCXONC | request::TIOCEXCL | request::TIOCNXCL => {}
        request::TIOCSTI => return Err(Errno::IO),
        _ => return Err(Errno::NOTTY),
    }
    Ok(0)
}

/// Requests about the session that the terminal controls.
fn job_ioctl(k: &mut Kernel<'_>, pty: &Pty, is_master: bool, request: u32, argument: u64) -> Result {
    let (pid, session) = (k.process.pid, k.process.session);
    let is_own = pty.session.get() == session;
    match request {
        request::TIOCSCTTY => {
            if is_own && pid == session {
                return Ok(0);
            }
            if pid != session || pty.session.get() != 0 || k.system.ptys.of_session(session).is_some() {
                return Err(Errno::PERM);
            }
            pty.session.set(session);
            pty.foreground.set(k.process.group);
        }
        request::TIOCNOTTY if is_own => {
            if pid == session {
                terminals::give_up(k, pty);
            }
        }
        request::TIOCGPGRP if is_own || is_master => user::write(k.mem, argument, pty.foreground.get())?,
        request::TIOCSPGRP if is_own => {
            if !terminals::may_use(k, pty, SIGTTOU).map_err(|_| Errno::NOTTY)? {
                return Ok(0);
            }
            let group: u32 = user::read(k.mem, argument)?;
            if group as i32 <= 0 {
                return Err(Errno::INVAL);
            }
            let member = k.all_processes().find(|process| process.group == group).ok_or(Errno::SRCH)?;
            if member.session != session {
                return Err(Errno::PERM);
            }
            pty.foreground.set(group);
        }
        request::TIOCGSID if (is_own || is_master) && pty.session.get() != 0 => {
            user::write(k.mem, argument, pty.session.get())?;
        }
        _ => return Err(Errno::NOTTY),
    }
    Ok(0)
}
