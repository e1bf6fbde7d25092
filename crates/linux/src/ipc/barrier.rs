//! The hardware barrier: blades that the cores of a CMG share, windows through which a core accesses them, and the rules of the
//! driver.
//!
//! A blade knows which cores participate (`BST_MASK`), what each wrote last (`BST`) and the value of the last completed barrier
//! (`LBSY`). When all participants have written the same value, `LBSY` changes to it and each of them receives an event, both
//! after a latency for the propagation between cores.
//!
//! Source: A64FX specification, Fujitsu HPC Extension, version 1, 1.4; for the driver's rules and errors, the header and the test
//! expectations of Fujitsu's hardware barrier library.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_aarch64::hpc::{BARRIER_WINDOWS, WindowAccess};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::fs::vfs::tree::Kind;
use crate::kernel::Kernel;
use crate::platform::{BarrierPlatform, Platform};
use crate::sched::wait::{Blocked, Wait};
use crate::system::System;

/// The device file of the driver.
pub(crate) const DEVICE: &str = "/dev/fujitsu_hwb";

/// An open device file: device and inode of the host file behind it.
pub(crate) type Owner = (u64, u64);

/// The position of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub cpu: u32,
    /// Index of its CMG in the machine.
    pub cmg: u32,
    /// Its index in the CMG (`BST_BIT` of `IMP_BARRIER_BST_BIT_EL1`).
    pub core: u32,
}

impl Platform {
    /// Returns the position of a CPU; `None` if there is no such CPU.
    pub(crate) fn place_of(&self, cpu: u32) -> Option<Place> {
        let node = self.node_of(cpu)?;
        let cmg = self.nodes().iter().position(|&other| other == node)? as u32;
        let core = self.cpus_of(node).iter().position(|&other| other == cpu)? as u32;
        Some(Place { cpu, cmg, core })
    }
}

/// One blade in use (`IMP_BARRIER_INIT_SYNC_BBn_EL1`).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Blade {
    owner: Owner,
    /// Participating CPUs.
    members: Vec<Place>,
    /// Participating cores, one bit for each core of the CMG.
    mask: u16,
    /// The last value written by each core.
    bst: u16,
    /// The value of the last completed barrier, from `since_ns` on; `before` until then.
    lbsy: bool,
    before: bool,
    since_ns: u64,
}

impl Blade {
    fn new(owner: Owner, members: Vec<Place>) -> Blade {
        let mask = members.iter().fold(0, |mask, member| mask | 1 << member.core);
        Blade { owner, members, mask, bst: 0, lbsy: false, before: false, since_ns: 0 }
    }

    fn member(&self, cpu: u32) -> Option<&Place> {
        self.members.iter().find(|member| member.cpu == cpu)
    }

    /// Returns `LBSY` at `now_ns`.
    fn read(&self, now_ns: u64) -> bool {
        if now_ns >= self.since_ns { self.lbsy } else { self.before }
    }

    /// Writes a core's bit of `BST`. If this changes `LBSY`, returns from when on, ns.
    fn write(&mut self, core: u32, value: bool, now_ns: u64, latency_ns: u64) -> Option<u64> {
        self.bst = self.bst & !(1 << core) | u16::from(value) << core;
        let agreed = match self.bst & self.mask {
            0 => false,
            all if all == self.mask => true,
            _ => return None,
        };
        if agreed == self.lbsy {
            return None;
        }
        self.before = self.read(now_ns);
        self.lbsy = agreed;
        self.since_ns = now_ns + latency_ns;
        Some(self.since_ns)
    }
}

/// A blade: index of its CMG in the machine, its number in the CMG.
pub(crate) type BladeName = (u32, u32);

/// All blades and windows in use.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Barriers {
    blades: BTreeMap<BladeName, Blade>,
    /// Blade of each window (`IMP_BARRIER_ASSIGN_SYNC_Wn_EL1`), by CPU.
    windows: BTreeMap<u32, [Option<BladeName>; BARRIER_WINDOWS]>,
    /// When each CPU receives its next event, ns.
    events: BTreeMap<u32, u64>,
}

impl Barriers {
    /// `FUJITSU_HWB_IOC_BB_ALLOC`: allocates a blade for these cores.
    ///
    /// # Errors
    /// `EINVAL`: fewer than two cores, or of several CMGs. `EBUSY`: all blades are in use.
    pub(crate) fn allocate(
        &mut self,
        barrier: &BarrierPlatform,
        owner: Owner,
        members: Vec<Place>,
    ) -> Result<BladeName, Errno> {
        let cmg = members.first().ok_or(Errno::INVAL)?.cmg;
        if members.len() < 2 || members.iter().any(|member| member.cmg != cmg || member.core >= barrier.cores) {
            return Err(Errno::INVAL);
        }
        let number = (0..barrier.blades).find(|&number| !self.blades.contains_key(&(cmg, number)));
        let name = (cmg, number.ok_or(Errno::BUSY)?);
        self.blades.insert(name, Blade::new(owner, members));
        Ok(name)
    }

    fn owned(&self, owner: Owner, name: BladeName) -> Result<&Blade, Errno> {
        self.blades.get(&name).filter(|blade| blade.owner == owner).ok_or(Errno::INVAL)
    }

    /// `FUJITSU_HWB_IOC_BB_FREE`: frees a blade and its windows.
    ///
    /// # Errors
    /// `EINVAL`: not a blade of this open file.
    pub(crate) fn free(&mut self, owner: Owner, name: BladeName) -> Result<(), Errno> {
        self.owned(owner, name)?;
        self.remove(name);
        Ok(())
    }

    fn remove(&mut self, name: BladeName) {
        self.blades.remove(&name);
        for window in self.windows.values_mut() {
            for blade in window.iter_mut() {
                blade.take_if(|blade| *blade == name);
            }
        }
    }

    /// Frees the blades of files that are no longer open.
    pub(crate) fn keep(&mut self, open: &BTreeSet<Owner>) {
        let left = self.blades.iter().filter(|(_, blade)| !open.contains(&blade.owner));
        for name in left.map(|(&name, _)| name).collect::<Vec<_>>() {
            self.remove(name);
        }
    }

    /// `FUJITSU_HWB_IOC_BW_ASSIGN`: assigns a core's window to blade `number` of its CMG; for `window` -1, the first free window.
    /// Returns the window's number.
    ///
    /// # Errors
    /// `EINVAL`: not a blade of this open file, or not one for this core, or this core already has a window to it; no such
    /// window. `EBUSY`: the window, or with -1 every window, is in use.
    pub(crate) fn assign(&mut self, owner: Owner, place: Place, number: u32, window: i8) -> Result<u8, Errno> {
        let name = (place.cmg, number);
        let participates = self.owned(owner, name)?.member(place.cpu).is_some();
        let windows = self.windows.entry(place.cpu).or_default();
        if !participates || windows.contains(&Some(name)) {
            return Err(Errno::INVAL);
        }
        let window = match usize::try_from(window) {
            Ok(window) if window >= BARRIER_WINDOWS => return Err(Errno::INVAL),
            Ok(window) => Some(window).filter(|&window| windows[window].is_none()),
            Err(_) if window == -1 => windows.iter().position(Option::is_none),
            Err(_) => return Err(Errno::INVAL),
        };
        let window = window.ok_or(Errno::BUSY)?;
        windows[window] = Some(name);
        Ok(window as u8)
    }

    /// `FUJITSU_HWB_IOC_BW_UNASSIGN`: frees the core's window to blade `number` of its CMG.
    ///
    /// # Errors
    /// `EINVAL`: not a blade of this open file, or the core has no window to it.
    pub(crate) fn unassign(&mut self, owner: Owner, place: Place, number: u32) -> Result<(), Errno> {
        let name = (place.cmg, number);
        self.owned(owner, name)?;
        let windows = self.windows.entry(place.cpu).or_default();
        let window = windows.iter_mut().find(|window| **window == Some(name)).ok_or(Errno::INVAL)?;
        *window = None;
        Ok(())
    }

    /// Returns the blade behind a window.
    fn behind(&mut self, cpu: u32, window: u8) -> Option<&mut Blade> {
        let name = self.windows.get(&cpu)?.get(usize::from(window)).copied()??;
        self.blades.get_mut(&name)
    }

    /// Returns `LBSY` as a CPU reads it through a window at `now_ns`; `None` when the window is not assigned.
    fn read(&mut self, cpu: u32, window: u8, now_ns: u64) -> Option<bool> {
        self.behind(cpu, window).map(|blade| blade.read(now_ns))
    }

    /// Writes a CPU's bit of `BST` through a window at `now_ns`; `None` when the window is not assigned. If that completes a
    /// barrier, each participating core receives an event. It replaces an earlier event, which has been consumed by then: the
    /// core has seen the previous barrier complete.
    fn write(&mut self, cpu: u32, window: u8, value: bool, now_ns: u64, latency_ns: u64) -> Option<()> {
        self.take_event(cpu, now_ns);
        let blade = self.behind(cpu, window)?;
        let core = blade.member(cpu)?.core;
        if let Some(at_ns) = blade.write(core, value, now_ns, latency_ns) {
            let members: Vec<u32> = blade.members.iter().map(|member| member.cpu).collect();
            for cpu in members {
                let next = self.events.entry(cpu).or_insert(at_ns);
                *next = at_ns.min(*next);
            }
        }
        Some(())
    }

    /// Returns when a CPU receives its next event, ns.
    fn event_ns(&self, cpu: u32) -> Option<u64> {
        self.events.get(&cpu).copied()
    }

    /// Takes a CPU's event that is due by `now_ns`. Returns whether there was one.
    fn take_event(&mut self, cpu: u32, now_ns: u64) -> bool {
        let due = self.event_ns(cpu).is_some_and(|at_ns| at_ns <= now_ns);
        if due {
            self.events.remove(&cpu);
        }
        due
    }

    /// Returns the blades of a CMG that are in use, one bit each.
    fn used_blades(&self, cmg: u32) -> u32 {
        self.blades.keys().filter(|name| name.0 == cmg).fold(0, |used, name| used | 1 << name.1)
    }

    /// Returns the windows of a CPU that are in use, one bit each.
    fn used_windows(&self, cpu: u32) -> u32 {
        let windows = self.windows.get(&cpu).into_iter().flatten().zip(0..);
        windows.filter(|(window, _)| window.is_some()).fold(0, |used, (_, number)| used | 1 << number)
    }
}

impl Kernel<'_> {
    /// Returns the open files of the driver, in all processes.
    pub(crate) fn barrier_files(&self) -> BTreeSet<Owner> {
        let all = self.all_processes().map(|process| &process.files);
        all.flat_map(|files| (0..files.end()).filter_map(|fd| barrier_file(files, fd))).collect()
    }

    /// Performs an access to a window of the CPU on which the thread runs. `None`: the CPU has no such window, and the
    /// instruction is undefined.
    pub(crate) fn access_window(&mut self, access: WindowAccess) -> Option<()> {
        let (cpu, now_ns) = (self.thread.cpu_number(), self.system.now_ns);
        let barriers = &mut self.system.shared_registers.barriers;
        match access {
            WindowAccess::Read { window, into } => {
                let lbsy = barriers.read(cpu, window, now_ns)?;
                self.thread.cpu.set_x(into, lbsy.into());
                Some(())
            }
            WindowAccess::Write { window, value } => {
                let latency_ns = self.system.platform.barrier.map_or(0, |barrier| barrier.latency_ns);
                barriers.write(cpu, window, value, now_ns, latency_ns)?;
                self.limit_event_waits();
                Some(())
            }
        }
    }

    /// Limits the waits of threads in `WFE` to the next event that the hardware barrier sends to their CPU.
    fn limit_event_waits(&mut self) {
        let events = &self.system.shared_registers.barriers.events;
        for thread in self.other_threads.iter_mut() {
            let Some(&at_ns) = events.get(&thread.cpu_number()) else { continue };
            if let Some(Blocked { wait: Wait::Event(_), until_ns, .. }) = &mut thread.blocked {
                *until_ns = at_ns.min(*until_ns);
                self.system.next_event_ns = at_ns.min(self.system.next_event_ns);
            }
        }
    }
}

impl System {
    /// Returns when the hardware barrier sends a CPU its next event, in simulated ns: it ends the current `WFE` or the next one.
    pub(crate) fn barrier_event_ns(&self, cpu: u32) -> Option<u64> {
        self.shared_registers.barriers.event_ns(cpu)
    }

    /// Takes the event of a CPU that is due by `now_ns`. Returns whether there was one.
    pub(crate) fn take_barrier_event(&mut self, cpu: u32, now_ns: u64) -> bool {
        self.shared_registers.barriers.take_event(cpu, now_ns)
    }
}

/// Returns the identity of the open file behind a descriptor, if it is one of the driver.
pub(crate) fn barrier_file(files: &crate::fs::files::Files, fd: i32) -> Option<Owner> {
    files.simulated(fd).filter(|node| node.kind == Kind::HardwareBarrier)?;
    let stat = rustix::fs::fstat(files.host(fd).ok()?).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// The driver's files in `/sys`.
pub(crate) mod sysfs {
    use super::{BarrierPlatform, Barriers, Kernel, Platform};
    use fxscope_aarch64::hpc::BARRIER_WINDOWS;

    /// The folder of the driver.
    pub(crate) const FOLDER: &str = "/sys/class/misc/fujitsu_hwb";

    /// Returns the numbers of CMGs, blades per CMG, windows per core, and the maximum number of cores per CMG.
    pub(crate) fn hardware(platform: &Platform, barrier: &BarrierPlatform) -> String {
        format!("{} {} {BARRIER_WINDOWS} {}\n", platform.nodes_with_cpus().len(), barrier.blades, barrier.cores)
    }

    /// Returns the CPUs of a CMG with their indices in it.
    pub(crate) fn core_map(platform: &Platform, node: u32) -> String {
        let cores = platform.cpus_of(node).into_iter().zip(0..);
        cores.map(|(cpu, core): (u32, u32)| format!("{cpu} {core}\n")).collect()
    }

    /// Returns what open files use.
    fn in_use(k: &Kernel<'_>) -> Barriers {
        let mut barriers = k.system.shared_registers.barriers.clone();
        barriers.keep(&k.barrier_files());
        barriers
    }

    fn cmg(k: &Kernel<'_>, node: u32) -> u32 {
        k.system.platform.nodes().iter().position(|&other| other == node).unwrap_or(0) as u32
    }

    /// Returns the blades in use.
    pub(crate) fn used_blades(k: &Kernel<'_>, node: u32) -> Vec<u8> {
        format!("{:04x}\n", in_use(k).used_blades(cmg(k, node))).into_bytes()
    }

    /// Returns the windows in use, for each CPU.
    pub(crate) fn used_windows(k: &Kernel<'_>, node: u32) -> Vec<u8> {
        let barriers = in_use(k);
        let line = |cpu| format!("{cpu} {:04x}\n", barriers.used_windows(cpu));
        k.system.platform.cpus_of(node).into_iter().map(line).collect::<String>().into_bytes()
    }

    /// Returns `BST_MASK` and `BST` of a blade.
    pub(crate) fn blade(k: &Kernel<'_>, node: u32, number: u32) -> Vec<u8> {
        let barriers = in_use(k);
        let (mask, bst) = barriers.blades.get(&(cmg(k, node), number)).map_or((0, 0), |blade| (blade.mask, blade.bst));
        format!("{mask:04x}\n{bst:04x}\n").into_bytes()
    }
}

#[cfg(test)]
mod tests;
