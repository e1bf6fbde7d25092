//! Before the part, when the guest runs functionally: it stops where functions and regions begin and end. All other code runs as fast as
//! without.

use fxscope_aarch64::Engine;
use fxscope_linux::guest::PID;
use fxscope_linux::{Code, Guest};

use super::{Part, Phase};
use crate::markers::{Edge, Markers};
use crate::region::{Regions, Snapshot, Totals};

impl Part {
    /// Adds the stops in the code of the running process, whose other stops have just been chosen.
    pub(crate) fn learn<E: Engine>(&mut self, guest: &Guest, code: &mut Code<E>) {
        if self.phase != Phase::Skipped {
            return;
        }
        self.markers.retain(|&pid, _| guest.has_process(pid));
        let markers = Markers::of(guest, &self.plan.functions());
        markers.stops().for_each(|address| code.add_stop(address));
        let is_here = |thread: u32| guest.process_of_thread(PID + thread).is_some_and(|it| it.pid == guest.pid());
        let frames = self.from.frames().chain(self.until.frames());
        let returns = frames.filter(|&(thread, frame)| frame.address != 0 && is_here(thread));
        returns.for_each(|(_, frame)| code.add_stop(frame.address));
        self.markers.insert(guest.pid(), markers);
    }

    /// The running thread has arrived at a stop.
    pub(crate) fn stopped<E: Engine>(&mut self, guest: &mut Guest, code: &mut Code<E>, regions: &mut Regions) {
        if self.phase != Phase::Skipped {
            return;
        }
        let Some(markers) = self.markers.remove(&guest.pid()) else { return };
        if self.has_functions() {
            self.follow_calls(&markers, guest, code);
        }
        self.follow_region(&markers, guest, regions);
        self.markers.insert(guest.pid(), markers);
    }

    fn follow_calls<E: Engine>(&mut self, markers: &Markers, guest: &Guest, code: &mut Code<E>) {
        let thread = guest.thread().tid - PID;
        let before = self.return_addresses(thread);
        self.arrives(markers.function_at(guest.cpu().pc), guest);
        let after = self.return_addresses(thread);
        if before != after {
            before.into_iter().for_each(|address| code.remove_stop(address));
            after.into_iter().for_each(|address| code.add_stop(address));
        }
    }

    fn return_addresses(&self, thread: u32) -> Vec<u64> {
        let frames = self.from.frames().chain(self.until.frames()).filter(|&(its, _)| its == thread);
        frames.map(|(_, frame)| frame.address).filter(|&address| address != 0).collect()
    }

    fn follow_region(&mut self, markers: &Markers, guest: &mut Guest, regions: &mut Regions) {
        let last = guest.cpu().pc.wrapping_sub(4);
        let Some((edge, name)) = markers.met(last, guest) else { return };
        let (thread, leader) = (guest.thread().tid - PID, guest.pid() - PID);
        // Behind a probe there may be the head of a loop.
        if markers.has_probe(last)
            && name.as_ref().is_some_and(|name| regions.has(thread, name) == (edge == Edge::Begin))
        {
            return;
        }
        let now = Snapshot { totals: Totals::new(), ns: guest.now_ns() };
        if let Some(name) = regions.meets(edge, thread, thread == leader, name, now) {
            self.meets(edge, &name, guest);
        }
    }
}
