//! The `ioctl`s of the hardware barrier's driver.

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result};
use crate::ipc::barrier::{Owner, Place, barrier_file};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::platform::BarrierPlatform;

/// `struct fujitsu_hwb_ioc_bb_ctl`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct BladeRequest {
    cmg: u8,
    blade: u8,
    unused: [u8; 2],
    mask_bytes: u32,
    mask: u64,
}

/// `struct fujitsu_hwb_ioc_bw_ctl`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct WindowRequest {
    blade: u8,
    window: i8,
}

/// Maximum size of a CPU mask, bytes: 1024 CPUs, as in `cpu_set_t`.
const MASK_BYTES: u32 = 128;

/// Handles the `ioctl` if the descriptor is open for the driver's device file; `None` otherwise.
pub(super) fn ioctl(k: &mut Kernel<'_>, a: &Args) -> Option<Result> {
    let owner = barrier_file(&k.process.files, a[0] as i32)?;
    let barrier = k.system.platform.barrier?;
    let open = k.barrier_files();
    k.system.shared_registers.barriers.keep(&open);
    Some(request(k, &barrier, owner, a))
}

fn request(k: &mut Kernel<'_>, barrier: &BarrierPlatform, owner: Owner, a: &Args) -> Result {
    const ALLOCATE: u32 = 0xc010_4600;
    const ASSIGN: u32 = 0xc002_4601;
    const UNASSIGN: u32 = 0x4002_4602;
    const FREE: u32 = 0x4010_4603;
    const PLACE: u32 = 0x8002_4604;
    match a[1] as u32 {
        ALLOCATE => allocate(k, barrier, owner, a[2])?,
        FREE => {
            let asked: BladeRequest = user::read(k.mem, a[2])?;
            k.system.shared_registers.barriers.free(owner, (asked.cmg.into(), asked.blade.into()))?;
        }
        ASSIGN => {
            let place = only_place(k)?;
            let asked: WindowRequest = user::read(k.mem, a[2])?;
            let barriers = &mut k.system.shared_registers.barriers;
            let window = barriers.assign(owner, place, asked.blade.into(), asked.window)?;
            user::write(k.mem, a[2], WindowRequest { window: window as i8, ..asked })?;
        }
        UNASSIGN => {
            let place = only_place(k)?;
            let asked: WindowRequest = user::read(k.mem, a[2])?;
            k.system.shared_registers.barriers.unassign(owner, place, asked.blade.into())?;
        }
        PLACE => {
            let place = k.system.platform.place_of(k.thread.cpu_number()).ok_or(Errno::INVAL)?;
            user::write(k.mem, a[2], [place.cmg as u8, place.core as u8])?;
        }
        _ => return Err(Errno::NOTTY),
    }
    Ok(0)
}

fn allocate(
    k: &mut Kernel<'_>,
    barrier: &BarrierPlatform,
    owner: Owner,
    address: u64,
) -> std::result::Result<(), Errno> {
    let asked: BladeRequest = user::read(k.mem, address)?;
    let mask = user::read_bytes(k.mem, asked.mask, asked.mask_bytes.min(MASK_BYTES) as usize)?;
    let bits =
        mask.iter().zip(0u32..).flat_map(|(&byte, n)| (0..8).map(move |bit| (byte >> bit & 1 == 1, 8 * n + bit)));
    let members = bits.filter(|&(there, _)| there).map(|(_, cpu)| k.system.platform.place_of(cpu).ok_or(Errno::INVAL));
    let members = members.collect::<std::result::Result<Vec<Place>, Errno>>()?;
    let (cmg, blade) = k.system.shared_registers.barriers.allocate(barrier, owner, members)?;
    user::write(k.mem, address, BladeRequest { cmg: cmg as u8, blade: blade as u8, ..asked })
}

/// Returns the position of a thread that is bound to one CPU: windows belong to a core, not to a thread.
fn only_place(k: &Kernel<'_>) -> std::result::Result<Place, Errno> {
    let allowed: u32 = k.thread.affinity.iter().map(|word| word.count_ones()).sum();
    k.system.platform.place_of(k.thread.cpu_number()).filter(|_| allowed == 1).ok_or(Errno::PERM)
}
