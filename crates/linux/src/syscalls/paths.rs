//! System calls on names: creating, renaming and deleting files and folders, the current directory, permissions and times.

use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::transfer::write_error;
use super::{Args, Result, files};
use crate::abi::time::Time;
use crate::fs::files::{AT_FDCWD, DIRECTORY, OpenFile};
use crate::fs::vfs::Origin;
use crate::fs::vfs::access::Denied;
use crate::fs::vfs::handle::{Handle, is_device, parent, set_times};
use crate::fs::vfs::resolve::{self, Last, Place, Target, resolve};
use crate::fs::vfs::tree::Kind;
use crate::kernel::Kernel;
use crate::mm::user;

type Outcome<T> = std::result::Result<T, Errno>;

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_EMPTY_PATH: u64 = 0x1000;

/// Refuses flags other than `known`.
pub(super) fn check_flags(flags: u64, known: u64) -> Outcome<()> {
    if flags as u32 as u64 & !known == 0 { Ok(()) } else { Err(Errno::INVAL) }
}

/// Resolves the path of a call.
pub(super) fn target(k: &mut Kernel<'_>, dir: u64, name: u64, last: Last) -> Outcome<Target> {
    let name = user::string(k.mem, name)?;
    resolve(k, dir as i32, &name, last)
}

/// Returns how the last component is treated under the flag `AT_SYMLINK_NOFOLLOW`.
pub(super) fn last(flags: u64) -> Last {
    if flags & AT_SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow }
}

/// Returns a host file that the program may change, create or delete. `EACCES` for any other and for devices, which may only be
/// opened; `EPERM` for simulated ones.
fn changeable(k: &Kernel<'_>, target: Target) -> Outcome<Place> {
    match target {
        Target::Host(place) => {
            let policy = &k.process.files.view.policy;
            policy.check(!place.kind.is_some_and(is_device), Denied::Device, &place.path)?;
            policy.check(policy.may_change(&place.path), Denied::Write, &place.path)?;
            Ok(place)
        }
        Target::Simulated(_) | Target::Descriptor(_) | Target::DescriptorOf(..) => Err(Errno::PERM),
    }
}

/// Returns the location of a new file. `EEXIST` if it exists.
fn vacant(k: &mut Kernel<'_>, dir: u64, name: u64) -> Outcome<Place> {
    match target(k, dir, name, Last::Keep)? {
        Target::Host(Place { kind: None, .. }) => {}
        _ => return Err(Errno::EXIST),
    }
    let target = target(k, dir, name, Last::Keep)?;
    let place = changeable(k, target)?;
    files::add_name(k, &place.path)?;
    Ok(place)
}

/// Returns an existing host file that the program may change. `ENOENT` if there is none.
fn existing(k: &mut Kernel<'_>, dir: u64, name: u64, last: Last) -> Outcome<Place> {
    match target(k, dir, name, last)? {
        Target::Host(Place { kind: None, .. }) => Err(Errno::NOENT),
        target => changeable(k, target),
    }
}

/// Checks that the program may change the attributes of the file behind a descriptor: if it has or had a path, according to the
/// path; otherwise, unless it is the host's.
fn check_descriptor(k: &Kernel<'_>, fd: i32) -> Outcome<()> {
    let file = k.process.files.open_file(fd)?;
    if let Origin::Simulated(_) = file.origin {
        return Err(Errno::PERM);
    }
    let host = file.host.as_fd();
    let Some((path, _)) = resolve::last_path_of(host) else {
        return if k.process.files.is_inherited(host) { Err(Errno::PERM) } else { Ok(()) };
    };
    let policy = &k.process.files.view.policy;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(host)?.st_mode);
    policy.check(!is_device(kind), Denied::Device, &path)?;
    policy.check(policy.may_change(&path), Denied::Write, &path)
}

/// Opens a handle for a file whose attributes the program may change.
fn handle(k: &Kernel<'_>, place: &Place) -> Outcome<Handle> {
    let policy = &k.process.files.view.policy;
    let handle = Handle::new(policy, &place.path)?;
    policy.check(!is_device(handle.kind()), Denied::Device, &place.path)?;
    Ok(handle)
}

/// Returns the folder of a host file, and the file's name in it.
fn named<'p>(k: &Kernel<'_>, place: &'p Place) -> Outcome<(Handle, &'p [u8])> {
    parent(&k.process.files.view.policy, &place.path)
}

pub(super) fn mkdirat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let place = vacant(k, a[0], a[1])?;
    let (folder, name) = named(k, &place)?;
    let mode = Mode::from_raw_mode(a[2] as u32 & 0o7777);
    k.process.files.umask.making(|| rustix::fs::mkdirat(folder, name, mode))?;
    Ok(0)
}

/// `mknodat`: named pipes and empty files; devices are reserved to the superuser.
pub(super) fn mknodat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let kind = match FileType::from_raw_mode(a[2] as u32) {
        FileType::Fifo => FileType::Fifo,
        FileType::RegularFile | FileType::Unknown => FileType::RegularFile,
        _ => return Err(Errno::PERM),
    };
    let place = vacant(k, a[0], a[1])?;
    let (folder, name) = named(k, &place)?;
    let mode = Mode::from_raw_mode(a[2] as u32 & 0o7777);
    k.process.files.umask.making(|| rustix::fs::mknodat(folder, name, kind, mode, 0))?;
    Ok(0)
}

pub(super) fn unlinkat(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_flags(a[2], AT_REMOVEDIR)?;
    let place = existing(k, a[0], a[1], Last::Keep)?;
    let (folder, name) = named(k, &place)?;
    let flags = if a[2] & AT_REMOVEDIR != 0 { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    rustix::fs::unlinkat(folder, name, flags)?;
    Ok(0)
}

pub(super) fn renameat(k: &mut Kernel<'_>, a: &Args) -> Result {
    renameat2(k, &[a[0], a[1], a[2], a[3], 0, 0])
}

pub(super) fn renameat2(k: &mut Kernel<'_>, a: &Args) -> Result {
    let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
    let flags = RenameFlags::from_bits(a[4] as u32).filter(|&flags| known.contains(flags)).ok_or(Errno::INVAL)?;
    let old = existing(k, a[0], a[1], Last::Keep)?;
    let new = target(k, a[2], a[3], Last::Keep)?;
    let new = changeable(k, new)?;
    let ((old_folder, old_name), (new_folder, new_name)) = (named(k, &old)?, named(k, &new)?);
    rustix::fs::renameat_with(old_folder, old_name, new_folder, new_name, flags)?;
    Ok(0)
}

/// `linkat`. The program must also be allowed to change the old name: through the new one it could.
pub(super) fn linkat(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_flags(a[4], AT_SYMLINK_FOLLOW)?;
    let last = if a[4] & AT_SYMLINK_FOLLOW != 0 { Last::Follow } else { Last::Keep };
    let old = existing(k, a[0], a[1], last)?;
    let new = vacant(k, a[2], a[3])?;
    let ((old_folder, old_name), (new_folder, new_name)) = (named(k, &old)?, named(k, &new)?);
    rustix::fs::linkat(old_folder, old_name, new_folder, new_name, AtFlags::empty())?;
    Ok(0)
}

pub(super) fn symlinkat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let text = user::string(k.mem, a[0])?;
    let place = vacant(k, a[1], a[2])?;
    let (folder, name) = named(k, &place)?;
    rustix::fs::symlinkat(text, folder, name)?;
    Ok(0)
}

pub(super) fn truncate(k: &mut Kernel<'_>, a: &Args) -> Result {
    let len = u64::try_from(a[1] as i64).map_err(|_| Errno::INVAL)?;
    let place = existing(k, AT_FDCWD as u64, a[0], Last::Follow)?;
    if place.kind == Some(FileType::Directory) {
        return Err(Errno::ISDIR);
    }
    if place.kind != Some(FileType::RegularFile) {
        return Err(Errno::INVAL);
    }
    let policy = &k.process.files.view.policy;
    let file = Handle::new(policy, &place.path)?.open(policy, OFlags::WRONLY | OFlags::NONBLOCK)?;
    rustix::fs::ftruncate(&file, len).map_err(|e| write_error(k, e))?;
    k.system.shared_files.after_resize(k.mem, file.as_fd())?;
    Ok(0)
}

pub(super) fn fchmod(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_descriptor(k, a[0] as i32)?;
    rustix::fs::fchmod(k.process.files.host(a[0] as i32)?, Mode::from_raw_mode(a[1] as u32 & 0o7777))?;
    Ok(0)
}

pub(super) fn fchmodat(k: &mut Kernel<'_>, a: &Args) -> Result {
    let place = existing(k, a[0], a[1], Last::Follow)?;
    let file = handle(k, &place)?;
    rustix::fs::chmod(file.link(), Mode::from_raw_mode(a[2] as u32 & 0o7777))?;
    Ok(0)
}

/// Returns owner and group for a call; -1 leaves one unchanged.
fn owners(a: &Args, first: usize) -> (Option<Uid>, Option<Gid>) {
    let id = |value: u64| Some(value as u32).filter(|&id| id != u32::MAX);
    (id(a[first]).map(Uid::from_raw), id(a[first + 1]).map(Gid::from_raw))
}

pub(super) fn fchown(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_descriptor(k, a[0] as i32)?;
    let (owner, group) = owners(a, 1);
    rustix::fs::fchown(k.process.files.host(a[0] as i32)?, owner, group)?;
    Ok(0)
}

pub(super) fn fchownat(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_flags(a[4], AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    if a[4] & AT_EMPTY_PATH != 0 && user::string(k.mem, a[1])?.is_empty() {
        return fchown(k, &[a[0], a[2], a[3], 0, 0, 0]);
    }
    let place = existing(k, a[0], a[1], last(a[4]))?;
    let (owner, group) = owners(a, 2);
    rustix::fs::chownat(handle(k, &place)?, "", owner, group, AtFlags::EMPTY_PATH)?;
    Ok(0)
}

/// `utimensat`; without a name it refers to the descriptor.
pub(super) fn utimensat(k: &mut Kernel<'_>, a: &Args) -> Result {
    check_flags(a[3], AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    let times = if a[2] == 0 { [NOW; 2] } else { user::read(k.mem, a[2])? };
    let [accessed, modified] = times.map(|t: Time| Timespec { tv_sec: t.seconds, tv_nsec: t.fraction });
    let times = Timestamps { last_access: accessed, last_modification: modified };
    if a[1] == 0 || (a[3] & AT_EMPTY_PATH != 0 && user::string(k.mem, a[1])?.is_empty()) {
        check_descriptor(k, a[0] as i32)?;
        rustix::fs::futimens(k.process.files.host(a[0] as i32)?, &times)?;
        return Ok(0);
    }
    let place = existing(k, a[0], a[1], last(a[3]))?;
    set_times(&handle(k, &place)?, &times)?;
    Ok(0)
}

/// The current time, as a time of `utimensat` (`UTIME_NOW`).
const NOW: Time = Time { seconds: 0, fraction: 0x3fff_ffff };

pub(super) fn getcwd(k: &mut Kernel<'_>, a: &Args) -> Result {
    let mut path = k.process.files.current_path()?;
    path.push(0);
    if path.len() as u64 > a[1] {
        return Err(Errno::RANGE);
    }
    user::write_bytes(k.mem, a[0], &path)?;
    Ok(path.len() as u64)
}

pub(super) fn chdir(k: &mut Kernel<'_>, a: &Args) -> Result {
    let directory = match target(k, AT_FDCWD as u64, a[0], Last::Follow)? {
        Target::Host(Place { kind: None, .. }) => return Err(Errno::NOENT),
        Target::Host(place) => {
            let policy = &k.process.files.view.policy;
            policy.check(policy.may_read(&place.path), Denied::Read, &place.path)?;
            OpenFile::new(Handle::new(policy, &place.path)?.open(policy, DIRECTORY)?, place.origin)
        }
        Target::Simulated(node) if node.kind == Kind::Directory => {
            // The host's folder is not used.
            OpenFile::new(rustix::fs::open("/", DIRECTORY, Mode::empty())?, Origin::Simulated(node))
        }
        Target::Simulated(_) | Target::DescriptorOf(..) => return Err(Errno::NOTDIR),
        Target::Descriptor(fd) => return fchdir(k, &[fd as u64, 0, 0, 0, 0, 0]),
    };
    k.process.files.set_current(directory);
    Ok(0)
}

pub(super) fn fchdir(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.process.files.directory_path(a[0] as i32)?;
    let directory = k.process.files.second(a[0] as i32)?;
    k.process.files.set_current(directory);
    Ok(0)
}

/// `chroot`, `mount` and related calls: reserved to the superuser.
pub(super) fn privileged(_: &mut Kernel<'_>, _: &Args) -> Result {
    Err(Errno::PERM)
}

/// Extended attributes: as on a file system without them.
pub(super) fn no_attributes(_: &mut Kernel<'_>, _: &Args) -> Result {
    Err(Errno::OPNOTSUPP)
}
