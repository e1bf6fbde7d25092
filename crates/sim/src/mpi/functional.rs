//! Calls of MPI in functional runs. The guest stops where functions of MPI begin and where calls return; all other code runs as fast as
//! without. The time of a call is that of the instructions that its process executes meanwhile.

use std::collections::BTreeMap;

use fxscope_aarch64::Engine;
use fxscope_linux::guest::{FUNCTIONAL_NS, PID};
use fxscope_linux::{Code, Guest};

use super::{Calls, Entry, Kind, OpenCall, Recorder};

/// Most functions of a process. Libraries have up to 4,000 names in C and Fortran; the memory for this number is far less than what
/// a process is charged with.
const MOST_FUNCTIONS: usize = 1 << 14;

/// Follows the calls of all threads.
#[derive(Default)]
pub(crate) struct Follower {
    recorder: Recorder,
    /// The functions of MPI of each process, by address.
    entries: BTreeMap<u32, BTreeMap<u64, Entry>>,
}

impl Follower {
    /// Returns what continues a run that a snapshot was taken of.
    pub(crate) fn restored(recorder: Recorder) -> Follower {
        Follower { recorder, entries: BTreeMap::new() }
    }

    /// Returns what continues a run that is modelled from now on.
    pub(crate) fn into_recorder(self) -> Recorder {
        self.recorder
    }

    /// Returns what a snapshot has to keep.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// A functional run begins, or continues after a snapshot.
    pub(crate) fn begins<E: Engine>(&mut self, guest: &Guest, code: &mut Code<E>) {
        code.use_stops();
        self.learn(guest, code);
    }

    /// A run that was modelled until now continues functionally.
    pub(crate) fn continues<E: Engine>(&mut self, guest: &mut Guest, code: &mut Code<E>) {
        self.begins(guest, code);
        guest.set_all_polls(|tid| self.recorder.call_of(tid - PID).is_some_and(|(kind, _)| kind != Kind::Other));
    }

    /// Chooses the stops in the code of the running process, which has functions that were not known.
    pub(crate) fn learn<E: Engine>(&mut self, guest: &Guest, code: &mut Code<E>) {
        self.entries.retain(|&pid, _| guest.has_process(pid));
        let (pid, symbols) = (guest.pid(), guest.running_symbols());
        let entries = self.entries.entry(pid).or_default();
        let known = |(name, address)| Some((address, Entry::of(name)?));
        let room = MOST_FUNCTIONS.saturating_sub(entries.len());
        match code.stops_version() {
            Some(version) => {
                entries.extend(symbols.functions_since(version).filter_map(known).take(room));
            }
            None => *entries = symbols.functions().filter_map(known).take(MOST_FUNCTIONS).collect(),
        }
        let is_here = |thread: u32| guest.process_of_thread(PID + thread).is_some_and(|process| process.pid == pid);
        let returns = self.recorder.returns_of_all().filter(|&(thread, _)| is_here(thread)).map(|(_, address)| address);
        code.set_stops(entries.keys().copied().chain(returns), symbols.version());
    }

    /// The running thread has arrived at a stop.
    pub(crate) fn arrives<E: Engine>(&mut self, guest: &mut Guest, code: &mut Code<E>) {
        let thread = guest.thread().tid - PID;
        let pc = guest.cpu().pc;
        let entry = self.entries.get(&guest.pid()).and_then(|entries| entries.get(&pc)).copied();
        let before = self.recorder.call_of(thread);
        if entry.is_some() || self.recorder.returns(thread, pc) {
            let now_ns = guest.instructions_of_process() * FUNCTIONAL_NS;
            self.recorder.arrives(thread, entry, guest, now_ns);
        }
        let call = self.recorder.call_of(thread);
        if call != before {
            before.into_iter().for_each(|(_, address)| code.remove_stop(address));
            call.into_iter().for_each(|(_, address)| code.add_stop(address));
            // Libraries wait by polling. Functions of other kinds do much else, such as starting the library.
            guest.set_polls(call.is_some_and(|(kind, _)| kind != Kind::Other));
        }
        code.pass(guest);
    }

    /// Returns the calls that have not ended, by the number of their thread.
    pub(crate) fn open_calls(&self) -> BTreeMap<u32, OpenCall> {
        self.recorder.open_calls()
    }

    /// Returns all calls; those that have not ended end now.
    pub(crate) fn finish(self, guest: &Guest) -> Calls {
        let instructions = guest.instructions_by_process();
        self.recorder.finish(|thread| {
            let process = guest.process_of_thread(PID + thread);
            process.and_then(|process| instructions.get(&process.pid)).map_or(0, |n| n * FUNCTIONAL_NS)
        })
    }
}
