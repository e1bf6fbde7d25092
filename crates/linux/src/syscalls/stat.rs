//! System calls that describe files: `stat` and its relatives, access checks, terminals.

use bytemuck::{Pod, Zeroable};
use rustix::fs::{Access, AtFlags, Mode, Stat};
use rustix::io::Errno;
use rustix::termios::SpecialCodeIndex;

use super::files::{at_flags, path};
use super::{Args, Result, guest};
use crate::kernel::Kernel;
use crate::thread::Thread;

/// arm64's `struct stat`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GuestStat {
    dev: u64,
    ino: u64,
    mode: u32,
    nlink: u32,
    uid: u32,
    gid: u32,
    rdev: u64,
    pad1: u64,
    size: i64,
    blksize: i32,
    pad2: i32,
    blocks: i64,
    accessed: guest::Time,
    modified: guest::Time,
    changed: guest::Time,
    unused: [u32; 2],
}

/// The parts of the host's `stat`, whose field types differ between hosts.
#[allow(clippy::unnecessary_cast)]
fn guest_stat(s: &Stat) -> GuestStat {
    let time = |seconds: i64, ns: i64| guest::Time { seconds, fraction: ns };
    GuestStat {
        dev: s.st_dev as u64,
        ino: s.st_ino as u64,
        mode: s.st_mode as u32,
        nlink: s.st_nlink as u32,
        uid: s.st_uid as u32,
        gid: s.st_gid as u32,
        rdev: s.st_rdev as u64,
        pad1: 0,
        size: s.st_size as i64,
        blksize: s.st_blksize as i32,
        pad2: 0,
        blocks: s.st_blocks as i64,
        accessed: time(s.st_atime as i64, s.st_atime_nsec as i64),
        modified: time(s.st_mtime as i64, s.st_mtime_nsec as i64),
        changed: time(s.st_ctime as i64, s.st_ctime_nsec as i64),
        unused: [0; 2],
    }
}

fn stat_at(k: &mut Kernel, dir: u64, name: u64, flags: u64) -> std::result::Result<GuestStat, Errno> {
    let flags = at_flags(flags)?;
    // Since Linux 6.11 a null pointer is an empty path.
    let name = if name == 0 && flags.contains(AtFlags::EMPTY_PATH) { Vec::new() } else { path(k, name)? };
    let dir = k.files.directory(dir as i32)?;
    let stat = if name.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
        rustix::fs::fstat(dir)?
    } else {
        rustix::fs::statat(dir, name, flags - AtFlags::EMPTY_PATH)?
    };
    Ok(guest_stat(&stat))
}

pub(super) fn fstat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let stat = guest_stat(&rustix::fs::fstat(k.files.host(a[0] as i32)?)?);
    guest::write(&mut k.mem, a[1], stat)?;
    Ok(0)
}

pub(super) fn newfstatat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let stat = stat_at(k, a[0], a[1], a[3])?;
    guest::write(&mut k.mem, a[2], stat)?;
    Ok(0)
}

/// A time stamp of `statx`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct StatxTime {
    seconds: i64,
    ns: u32,
    pad: i32,
}

/// `struct statx`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Statx {
    mask: u32,
    blksize: u32,
    attributes: u64,
    nlink: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    pad: u16,
    ino: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    accessed: StatxTime,
    born: StatxTime,
    changed: StatxTime,
    modified: StatxTime,
    rdev: [u32; 2],
    dev: [u32; 2],
    spare: [u64; 14],
}

/// What `stat` has too: everything except the time of birth.
const STATX_BASIC_STATS: u32 = 0x7ff;

pub(super) fn statx(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let s = stat_at(k, a[0], a[1], a[2])?;
    let time = |t: guest::Time| StatxTime { seconds: t.seconds, ns: t.fraction as u32, pad: 0 };
    let device = |d: u64| [rustix::fs::major(d), rustix::fs::minor(d)];
    let statx = Statx {
        mask: STATX_BASIC_STATS,
        blksize: s.blksize as u32,
        nlink: s.nlink,
        uid: s.uid,
        gid: s.gid,
        mode: s.mode as u16,
        ino: s.ino,
        size: s.size as u64,
        blocks: s.blocks as u64,
        accessed: time(s.accessed),
        changed: time(s.changed),
        modified: time(s.modified),
        rdev: device(s.rdev),
        dev: device(s.dev),
        ..Statx::zeroed()
    };
    guest::write(&mut k.mem, a[4], statx)?;
    Ok(0)
}

pub(super) fn faccessat(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    faccessat2(k, t, &[a[0], a[1], a[2], 0, 0, 0])
}

pub(super) fn faccessat2(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let access = Access::from_bits(a[2] as u32).ok_or(Errno::INVAL)?;
    let name = path(k, a[1])?;
    let mut flags = at_flags(a[3])?;
    if a[3] & 0x200 != 0 {
        flags = (flags - AtFlags::REMOVEDIR) | AtFlags::EACCESS;
    }
    rustix::fs::accessat(k.files.directory(a[0] as i32)?, name, access, flags)?;
    Ok(0)
}

pub(super) fn readlinkat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let name = guest::string(&mut k.mem, a[1])?;
    let target = if name == b"/proc/self/exe" {
        k.files.program.clone()
    } else {
        rustix::fs::readlinkat(k.files.directory(a[0] as i32)?, name, Vec::new())?.into_bytes()
    };
    if (a[3] as i32) <= 0 {
        return Err(Errno::INVAL);
    }
    let len = target.len().min(a[3] as usize);
    guest::write_bytes(&mut k.mem, a[2], &target[..len])?;
    Ok(len as u64)
}

pub(super) fn fchmod(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    rustix::fs::fchmod(k.files.host(a[0] as i32)?, Mode::from_raw_mode(a[1] as u32 & 0o7777))?;
    Ok(0)
}

pub(super) fn fchmodat(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let name = path(k, a[1])?;
    let mode = Mode::from_raw_mode(a[2] as u32 & 0o7777);
    rustix::fs::chmodat(k.files.directory(a[0] as i32)?, name, mode, AtFlags::empty())?;
    Ok(0)
}

/// The kernel's `struct termios`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GuestTermios {
    modes: [u32; 4],
    line: u8,
    codes: [u8; 19],
}

/// Special characters in the order of their indices on Linux.
const SPECIAL_CODES: [SpecialCodeIndex; 17] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VTIME,
    SpecialCodeIndex::VMIN,
    SpecialCodeIndex::VSWTC,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VEOL2,
];

/// `ioctl`: what programs ask terminals and pipes. Anything else is `ENOTTY`.
pub(super) fn ioctl(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    const TCGETS: u32 = 0x5401;
    const TIOCGWINSZ: u32 = 0x5413;
    const FIONREAD: u32 = 0x541b;
    const FIONBIO: u32 = 0x5421;
    const FIONCLEX: u32 = 0x5450;
    const FIOCLEX: u32 = 0x5451;
    let fd = a[0] as i32;
    let file = k.files.host(fd)?;
    match a[1] as u32 {
        TCGETS => {
            let t = rustix::termios::tcgetattr(file)?;
            let mut codes = [0; 19];
            for (code, index) in codes.iter_mut().zip(SPECIAL_CODES) {
                *code = t.special_codes[index];
            }
            let modes = [t.input_modes.bits(), t.output_modes.bits(), t.control_modes.bits(), t.local_modes.bits()];
            guest::write(&mut k.mem, a[2], GuestTermios { modes, line: t.line_discipline, codes })?;
        }
        TIOCGWINSZ => {
            let w = rustix::termios::tcgetwinsize(file)?;
            guest::write(&mut k.mem, a[2], [w.ws_row, w.ws_col, w.ws_xpixel, w.ws_ypixel])?;
        }
        FIONREAD => {
            let bytes = rustix::io::ioctl_fionread(file)?;
            guest::write(&mut k.mem, a[2], bytes as u32)?;
        }
        FIONBIO => {
            let on: u32 = guest::read(&mut k.mem, a[2])?;
            rustix::io::ioctl_fionbio(file, on != 0)?;
        }
        FIOCLEX => k.files.set_close_on_exec(fd, true)?,
        FIONCLEX => k.files.set_close_on_exec(fd, false)?,
        _ => return Err(Errno::NOTTY),
    }
    Ok(0)
}
