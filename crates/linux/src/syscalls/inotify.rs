//! Changes of files: `inotify(7)`. The host reports them; a program can watch what it may read.

use rustix::fs::OFlags;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::files::limit;
use super::poll::{CLOEXEC, NONBLOCK};
use super::{Args, Result};
use crate::budget;
use crate::fs::files::OpenFile;
use crate::fs::objects::Object;
use crate::fs::vfs::Origin;
use crate::fs::vfs::handle::Handle;
use crate::fs::vfs::resolve::{Last, Place, Target, path_of, resolve};
use crate::kernel::Kernel;
use crate::mm::user;

/// Cost of a watch on the host, in bytes.
const WATCH: u64 = 1 << 10;

/// Maximum number of watches of one instance.
const MOST: u64 = 8192;

pub(super) fn inotify_init1(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[0] & !(CLOEXEC | NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let mut flags = CreateFlags::CLOEXEC;
    flags.set(CreateFlags::NONBLOCK, a[0] & NONBLOCK != 0);
    let (channel, limit) = (k.unnamed_channel(budget::EVENT, false, Object::Host)?, limit(k));
    let file = OpenFile::new(inotify::init(flags)?, Origin::Host);
    Ok(k.process.files.insert_channel(file, Some(channel), a[0] & CLOEXEC != 0, limit)? as u64)
}

/// Returns a handle of the file that a path names.
fn watched(k: &Kernel<'_>, name: &[u8], last: Last) -> std::result::Result<Handle, Errno> {
    const AT_FDCWD: i32 = -100;
    let policy = &k.process.files.view.policy;
    match resolve(k, AT_FDCWD, name, last)? {
        Target::Host(Place { kind: None, .. }) => Err(Errno::NOENT),
        Target::Host(place) => {
            policy.check_open(&place.path, OFlags::RDONLY)?;
            Handle::new(policy, &place.path)
        }
        Target::Descriptor(fd) => {
            let file = k.process.files.host(fd)?;
            let path = path_of(file).ok_or(Errno::ACCESS)?;
            policy.check_open(&path, OFlags::RDONLY)?;
            Handle::of(policy, file, path)
        }
        // The kernel's files do not change in a way that it reports.
        Target::Simulated(_) | Target::DescriptorOf(..) => Err(Errno::ACCESS),
    }
}

pub(super) fn inotify_add_watch(k: &mut Kernel<'_>, a: &Args) -> Result {
    const DONT_FOLLOW: u32 = 0x200_0000;
    let (fd, mask) = (a[0] as i32, a[2] as u32);
    k.process.files.host(fd)?;
    let name = user::string(k.mem, a[1])?;
    let handle = watched(k, &name, if mask & DONT_FOLLOW != 0 { Last::Keep } else { Last::Follow })?;
    let channel = k.process.files.kept_channel(fd).ok_or(Errno::INVAL)?;
    if channel.charge.bytes() >= budget::EVENT + MOST * WATCH {
        return Err(Errno::NOSPC);
    }
    k.afford(WATCH).map_err(|_| Errno::NOSPC)?;
    // The handle's own name is a link that must be followed.
    let flags = WatchFlags::from_bits_retain(mask & !DONT_FOLLOW);
    let watch = inotify::add_watch(k.process.files.host(fd)?, handle.link(), flags)?;
    // An upper bound: the call may only have changed a watch.
    channel.charge.set(channel.charge.bytes() + WATCH);
    Ok(watch as u64)
}

pub(super) fn inotify_rm_watch(k: &mut Kernel<'_>, a: &Args) -> Result {
    let fd = a[0] as i32;
    inotify::remove_watch(k.process.files.host(fd)?, a[1] as i32)?;
    if let Some(channel) = k.process.files.channel(fd) {
        channel.charge.set(channel.charge.bytes().saturating_sub(WATCH).max(budget::EVENT));
    }
    Ok(0)
}
