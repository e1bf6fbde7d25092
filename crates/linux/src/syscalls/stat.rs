//! System calls that describe files: `stat` and related calls, access checks, terminals.

use bytemuck::{Pod, Zeroable};
use rustix::fs::{Access, AtFlags, CWD, FileType, Stat, StatFs};
use rustix::io::Errno;
use rustix::termios::SpecialCodeIndex;

use super::paths::{self, check_flags};
use super::{Args, Result, barrier, perf, pty, sockets};
use crate::abi::time::Time;
use crate::fs::files::{AT_FDCWD, Files};
use crate::fs::vfs::Origin;
use crate::fs::vfs::handle::Handle;
use crate::fs::vfs::resolve::{Last, Place, Target, resolve};
use crate::fs::vfs::tree::{Kind, Node};
use crate::kernel::Kernel;
use crate::mm::user;

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
    accessed: Time,
    modified: Time,
    changed: Time,
    unused: [u32; 2],
}

/// Converts the host's `stat`, whose field types differ between hosts.
#[allow(clippy::unnecessary_cast)]
fn guest_stat(s: &Stat) -> GuestStat {
    let time = |seconds: i64, ns: i64| Time { seconds, fraction: ns };
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

/// Returns the description of a simulated file.
fn simulated_stat(k: &Kernel<'_>, node: &Node) -> GuestStat {
    /// Usual device number of `/proc` and `/sys`.
    const DEVICE: u64 = 0x15;
    let rights = match node.kind {
        Kind::Directory | Kind::Command | Kind::Substitute => 0o555,
        Kind::File => 0o444,
        Kind::PageMap => 0o400,
        Kind::Memory => 0o600,
        Kind::Link | Kind::Descriptor(_) | Kind::DescriptorOf(..) => 0o777,
        Kind::Random | Kind::HardwareBarrier | Kind::Ptmx => 0o666,
        Kind::Terminal(_) => 0o620,
    };
    let sysfs = node.kind == Kind::File && node.path.starts_with(b"/sys/");
    let start = Time::from_ns(k.system.start_unix_ns);
    GuestStat {
        dev: DEVICE,
        ino: node.inode(),
        mode: node.file_type().as_raw_mode() | rights,
        nlink: if node.kind == Kind::Directory { 2 } else { 1 },
        rdev: match node.kind {
            Kind::Random => rustix::fs::makedev(1, 9),
            // A misc device; 63 is the first minor number that Linux assigns dynamically.
            Kind::HardwareBarrier => rustix::fs::makedev(10, 63),
            Kind::Ptmx => rustix::fs::makedev(5, 2),
            Kind::Terminal(number) => rustix::fs::makedev(136, number),
            _ => 0,
        },
        size: if sysfs { 4096 } else { 0 },
        blksize: 4096,
        accessed: start,
        modified: start,
        changed: start,
        ..GuestStat::zeroed()
    }
}

fn stat_descriptor(k: &Kernel<'_>, files: &Files, fd: i32) -> std::result::Result<GuestStat, Errno> {
    match files.simulated(fd) {
        Some(node) => Ok(simulated_stat(k, node)),
        None => Ok(guest_stat(&rustix::fs::fstat(files.host(fd)?)?)),
    }
}

fn stat_at(k: &mut Kernel<'_>, dir: u64, name: u64, flags: u64) -> std::result::Result<GuestStat, Errno> {
    const NO_AUTOMOUNT: u64 = 0x800;
    const EMPTY_PATH: u64 = 0x1000;
    const STATX_SYNC_TYPE: u64 = 0x6000;
    check_flags(flags, 0x100 | NO_AUTOMOUNT | EMPTY_PATH | STATX_SYNC_TYPE)?;
    let mut target = None;
    if flags & EMPTY_PATH != 0 {
        // Since Linux 6.11 a null pointer is an empty path.
        if name == 0 || user::string(k.mem, name)?.is_empty() {
            target = Some(match dir as i32 {
                AT_FDCWD => resolve(k, AT_FDCWD, b".", Last::Follow)?,
                fd => Target::Descriptor(fd),
            });
        }
    }
    let target = match target {
        Some(target) => target,
        None => paths::target(k, dir, name, paths::last(flags))?,
    };
    match target {
        Target::Host(Place { kind: None, .. }) => Err(Errno::NOENT),
        Target::Host(place) => Ok(guest_stat(Handle::new(&k.process.files.view.policy, &place.path)?.stat())),
        Target::Simulated(node) => Ok(simulated_stat(k, &node)),
        Target::Descriptor(fd) => stat_descriptor(k, &k.process.files, fd),
        Target::DescriptorOf(pid, fd) => stat_descriptor(k, k.open_files_of(pid)?, fd),
    }
}

pub(super) fn fstat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let stat = stat_descriptor(k, &k.process.files, a[0] as i32)?;
    user::write(k.mem, a[1], stat)?;
    Ok(0)
}

pub(super) fn newfstatat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let stat = stat_at(k, a[0], a[1], a[3])?;
    user::write(k.mem, a[2], stat)?;
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

/// The fields that `stat` has, too: everything except the time of birth.
const STATX_BASIC_STATS: u32 = 0x7ff;

pub(super) fn statx(k: &mut Kernel<'_>, a: &Args) -> Result {
    let s = stat_at(k, a[0], a[1], a[2])?;
    let time = |t: Time| StatxTime { seconds: t.seconds, ns: t.fraction as u32, pad: 0 };
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
    user::write(k.mem, a[4], statx)?;
    Ok(0)
}

pub(super) fn faccessat(k: &mut Kernel<'_>, a: &Args) -> Result {
    faccessat2(k, &[a[0], a[1], a[2], 0, 0, 0])
}

pub(super) fn faccessat2(k: &mut Kernel<'_>, a: &Args) -> Result {
    const EACCESS: u64 = 0x200;
    check_flags(a[3], 0x100 | EACCESS)?;
    let access = Access::from_bits(a[2] as u32).ok_or(Errno::INVAL)?;
    match paths::target(k, a[0], a[1], paths::last(a[3]))? {
        Target::Host(Place { kind: None, .. }) => Err(Errno::NOENT),
        Target::Host(place) => {
            let policy = &k.process.files.view.policy;
            // To write a folder is to create names in it.
            let is_folder = place.kind.is_some_and(FileType::is_dir);
            let writable = if is_folder { policy.may_create_in(&place.path) } else { policy.may_write(&place.path) };
            let readable = policy.may_read(&place.path);
            if (access.contains(Access::WRITE_OK) && !writable) || (access.contains(Access::READ_OK) && !readable) {
                return Err(Errno::ACCESS);
            }
            let flags = if a[3] & EACCESS != 0 { AtFlags::EACCESS } else { AtFlags::empty() };
            rustix::fs::accessat(CWD, Handle::new(policy, &place.path)?.link(), access, flags)?;
            Ok(0)
        }
        Target::Simulated(node) => {
            let rights = simulated_stat(k, &node).mode & 7;
            if access.bits() & !rights == 0 { Ok(0) } else { Err(Errno::ACCESS) }
        }
        Target::Descriptor(_) | Target::DescriptorOf(..) => Ok(0),
    }
}

pub(super) fn readlinkat(k: &mut Kernel<'_>, a: &Args) -> Result {
    if (a[3] as i32) <= 0 {
        return Err(Errno::INVAL);
    }
    let text = match paths::target(k, a[0], a[1], Last::Keep)? {
        Target::Host(Place { kind: None, .. }) => return Err(Errno::NOENT),
        Target::Host(Place { kind: Some(kind), .. }) if !kind.is_symlink() => return Err(Errno::INVAL),
        Target::Host(place) => Handle::new(&k.process.files.view.policy, &place.path)?.read_link()?,
        Target::Simulated(node) if matches!(node.kind, Kind::Link | Kind::Descriptor(_) | Kind::DescriptorOf(..)) => {
            k.process.files.view.tree.link(k, &node)
        }
        Target::Simulated(_) | Target::Descriptor(_) | Target::DescriptorOf(..) => return Err(Errno::INVAL),
    };
    let len = text.len().min(a[3] as usize);
    user::write_bytes(k.mem, a[2], &text[..len])?;
    Ok(len as u64)
}

/// `struct statfs` of 64-bit Linux.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GuestStatFs {
    kind: u64,
    block_bytes: u64,
    blocks: u64,
    free: u64,
    available: u64,
    files: u64,
    free_files: u64,
    id: [u32; 2],
    name_max: u64,
    fragment_bytes: u64,
    flags: u64,
    spare: [u64; 4],
}

/// Converts the host's `statfs`, whose field types differ between hosts.
#[allow(clippy::unnecessary_cast)]
fn guest_stat_fs(s: &StatFs) -> GuestStatFs {
    GuestStatFs {
        kind: s.f_type as u64,
        block_bytes: s.f_bsize as u64,
        blocks: s.f_blocks as u64,
        free: s.f_bfree as u64,
        available: s.f_bavail as u64,
        files: s.f_files as u64,
        free_files: s.f_ffree as u64,
        name_max: s.f_namelen as u64,
        fragment_bytes: s.f_frsize as u64,
        ..GuestStatFs::zeroed()
    }
}

fn simulated_stat_fs(node: &Node) -> GuestStatFs {
    const PROC: u64 = 0x9fa0;
    const SYS: u64 = 0x6265_6572;
    let kind = if node.path.starts_with(b"/sys") { SYS } else { PROC };
    GuestStatFs { kind, block_bytes: 4096, name_max: 255, fragment_bytes: 4096, ..GuestStatFs::zeroed() }
}

/// Returns the `statfs` of files in the simulated memory: all of the memory is available to them.
fn memory_stat_fs(k: &Kernel<'_>, host: &StatFs) -> GuestStatFs {
    let host = guest_stat_fs(host);
    let blocks = |bytes: u64| bytes / host.block_bytes.max(1);
    let (all, room) = (blocks(k.system.platform.memory_bytes), blocks(k.mem.room_bytes()));
    GuestStatFs { blocks: all, free: room, available: room, ..host }
}

fn stat_fs_descriptor(k: &Kernel<'_>, fd: i32) -> std::result::Result<GuestStatFs, Errno> {
    let file = k.process.files.open_file(fd)?;
    match &file.origin {
        Origin::Simulated(node) => Ok(simulated_stat_fs(node)),
        Origin::Memory => Ok(memory_stat_fs(k, &rustix::fs::fstatfs(&file.host)?)),
        Origin::Host | Origin::Sysroot => Ok(guest_stat_fs(&rustix::fs::fstatfs(&file.host)?)),
    }
}

pub(super) fn statfs(k: &mut Kernel<'_>, a: &Args) -> Result {
    let stat = match paths::target(k, AT_FDCWD as u64, a[0], Last::Follow)? {
        Target::Host(Place { kind: None, .. }) => return Err(Errno::NOENT),
        Target::Host(place) if k.process.files.view.policy.shared_memory.has(&place.path) => {
            memory_stat_fs(k, &Handle::new(&k.process.files.view.policy, &place.path)?.stat_fs()?)
        }
        Target::Host(place) => guest_stat_fs(&Handle::new(&k.process.files.view.policy, &place.path)?.stat_fs()?),
        Target::Simulated(node) => simulated_stat_fs(&node),
        Target::Descriptor(fd) => stat_fs_descriptor(k, fd)?,
        Target::DescriptorOf(..) => return Err(Errno::ACCESS),
    };
    user::write(k.mem, a[1], stat)?;
    Ok(0)
}

pub(super) fn fstatfs(k: &mut Kernel<'_>, a: &Args) -> Result {
    let stat = stat_fs_descriptor(k, a[0] as i32)?;
    user::write(k.mem, a[1], stat)?;
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

/// `ioctl`: what programs query of terminals and pipes. Anything else is `ENOTTY`.
pub(super) fn ioctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    if let Some(answer) = barrier::ioctl(k, a).or_else(|| pty::ioctl(k, a)).or_else(|| perf::ioctl(k, a)) {
        return answer;
    }
    if let Some(answer) = sockets::ioctl(k, a) {
        return answer;
    }
    const TCGETS: u32 = 0x5401;
    const TIOCGWINSZ: u32 = 0x5413;
    const FIONREAD: u32 = 0x541b;
    const FIONBIO: u32 = 0x5421;
    const FIONCLEX: u32 = 0x5450;
    const FIOCLEX: u32 = 0x5451;
    let fd = a[0] as i32;
    let file = k.process.files.host(fd)?;
    match a[1] as u32 {
        TCGETS => {
            let t = rustix::termios::tcgetattr(file)?;
            let mut codes = [0; 19];
            for (code, index) in codes.iter_mut().zip(SPECIAL_CODES) {
                *code = t.special_codes[index];
            }
            let modes = [t.input_modes.bits(), t.output_modes.bits(), t.control_modes.bits(), t.local_modes.bits()];
            user::write(k.mem, a[2], GuestTermios { modes, line: t.line_discipline, codes })?;
        }
        TIOCGWINSZ => {
            let w = rustix::termios::tcgetwinsize(file)?;
            user::write(k.mem, a[2], [w.ws_row, w.ws_col, w.ws_xpixel, w.ws_ypixel])?;
        }
        FIONREAD => {
            let bytes = rustix::io::ioctl_fionread(file)?;
            user::write(k.mem, a[2], bytes as u32)?;
        }
        FIONBIO => {
            let on: u32 = user::read(k.mem, a[2])?;
            rustix::io::ioctl_fionbio(file, on != 0)?;
        }
        FIOCLEX => k.process.files.set_close_on_exec(fd, true)?,
        FIONCLEX => k.process.files.set_close_on_exec(fd, false)?,
        _ => return Err(Errno::NOTTY),
    }
    Ok(0)
}
