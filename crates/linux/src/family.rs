//! The processes that a run has had, for reports: who started them, what they ran, and their MPI ranks.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The variables in which launchers give a process its rank: those of Open MPI, of PMIx, and of PMI (MPICH, Slurm).
const RANK_VARIABLES: [&[u8]; 3] = [b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK=", b"PMI_RANK="];

/// A process of a run. It may have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// The number of the process that started it.
    pub parent: u32,
    /// Path of the program that it executed last, as programs see it.
    pub program: Vec<u8>,
    /// Instructions that it executed, once it has ended.
    pub instructions: u64,
    /// Its rank in `MPI_COMM_WORLD`, if a launcher gave it or the process that started it one.
    pub rank: Option<u32>,
}

/// Most ranges of threads that are known; the oldest are forgotten.
const MOST_RANGES: usize = 1 << 16;

/// Threads that a process has started one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Threads {
    /// The numbers of the first and the last one.
    first: u32,
    last: u32,
    /// The number of their process.
    pid: u32,
}

/// All processes of a run, and the threads that they have started.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Family {
    /// By ascending numbers: new processes have the highest.
    processes: Vec<Member>,
    /// Threads other than the first of each process, ascending.
    threads: VecDeque<Threads>,
    /// Bytes of the paths in `processes`.
    path_bytes: u64,
}

impl Family {
    /// Notes a process, which `parent` has started and which still runs its program.
    pub(crate) fn starts(&mut self, pid: u32, parent: u32) {
        let (program, rank) = self.process(parent).map_or((Vec::new(), None), |p| (p.program.clone(), p.rank));
        self.path_bytes += program.len() as u64;
        self.processes.push(Member { pid, parent, program, instructions: 0, rank });
    }

    /// Notes that a process has ended, after this many instructions.
    pub(crate) fn ends(&mut self, pid: u32, instructions: u64) {
        if let Ok(place) = self.processes.binary_search_by_key(&pid, |process| process.pid) {
            self.processes[place].instructions = instructions;
        }
    }

    /// Returns the host memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let tables = size_of::<Member>() * self.processes.len() + size_of::<Threads>() * self.threads.len();
        tables as u64 + self.path_bytes
    }

    /// Notes that a process executes a program with this environment.
    pub(crate) fn executes(&mut self, pid: u32, program: &[u8], env: &[Vec<u8>]) {
        if let Ok(place) = self.processes.binary_search_by_key(&pid, |process| process.pid) {
            let process = &mut self.processes[place];
            self.path_bytes = self.path_bytes - process.program.len() as u64 + program.len() as u64;
            process.program = program.to_vec();
            process.rank = rank(env);
        }
    }

    /// Notes a thread.
    pub(crate) fn adds_thread(&mut self, tid: u32, pid: u32) {
        match self.threads.back_mut() {
            Some(range) if range.pid == pid && range.last + 1 == tid => range.last = tid,
            _ => {
                if self.threads.len() >= MOST_RANGES {
                    self.threads.pop_front();
                }
                self.threads.push_back(Threads { first: tid, last: tid, pid });
            }
        }
    }

    pub(crate) fn all(&self) -> &[Member] {
        &self.processes
    }

    fn process(&self, pid: u32) -> Option<&Member> {
        let place = self.processes.binary_search_by_key(&pid, |process| process.pid).ok()?;
        self.processes.get(place)
    }

    /// Returns whether a process has a rank that the process which started it does not have.
    pub(crate) fn is_first_of_rank(&self, pid: u32) -> bool {
        let Some(process) = self.process(pid) else { return false };
        process.rank.is_some() && self.process(process.parent).is_none_or(|parent| parent.rank != process.rank)
    }

    /// Returns the process of a thread.
    pub(crate) fn process_of(&self, tid: u32) -> Option<&Member> {
        let after = self.threads.partition_point(|range| range.first <= tid);
        let range = after.checked_sub(1).and_then(|place| self.threads.get(place)).filter(|range| tid <= range.last);
        self.process(range.map_or(tid, |range| range.pid))
    }
}

/// Returns the rank that an environment gives.
fn rank(env: &[Vec<u8>]) -> Option<u32> {
    let value = |name: &&[u8]| env.iter().find_map(|entry| entry.strip_prefix(*name));
    let text = RANK_VARIABLES.iter().find_map(value)?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Family, MOST_RANGES, Member, Threads};

    fn env(entries: &[&str]) -> Vec<Vec<u8>> {
        entries.iter().map(|entry| entry.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_process_has_the_rank_of_its_environment_and_its_children_and_threads_belong_to_it() {
        let mut family = Family::default();
        family.starts(1000, 999);
        family.executes(1000, b"/usr/bin/mpirun", &env(&["PATH=/bin"]));
        family.starts(1001, 1000);
        family.executes(1001, b"/app", &env(&["PMIX_RANK=7", "PMIX_RANKS=9"]));
        family.adds_thread(1002, 1001);
        family.starts(1003, 1001);
        let of = |tid| family.process_of(tid).map(|process| (process.pid, process.rank, &process.program[..]));
        assert_eq!(of(1000), Some((1000, None, &b"/usr/bin/mpirun"[..])));
        assert_eq!(of(1001), Some((1001, Some(7), &b"/app"[..])));
        assert_eq!(of(1002), of(1001));
        assert_eq!(of(1003), Some((1003, Some(7), &b"/app"[..])));
        assert_eq!(of(1004), None);
        let first = [1000, 1001, 1003, 1004].map(|pid| family.is_first_of_rank(pid));
        assert_eq!(first, [false, true, false, false]);
        let tables = 3 * size_of::<Member>() + size_of::<Threads>();
        assert_eq!(family.bytes(), (tables + "/usr/bin/mpirun".len() + 2 * "/app".len()) as u64);
    }

    #[test]
    fn threads_of_one_process_in_a_row_take_the_room_of_one_and_the_oldest_of_too_many_are_forgotten() {
        let mut family = Family::default();
        family.starts(10, 0);
        family.starts(11, 10);
        let before = family.bytes();
        (100..100_100).for_each(|tid| family.adds_thread(tid, 10));
        assert_eq!(family.bytes(), before + size_of::<Threads>() as u64);
        let of = |family: &Family, tid| family.process_of(tid).map(|process| process.pid);
        assert_eq!([99, 100, 100_099, 100_100].map(|tid| of(&family, tid)), [None, Some(10), Some(10), None]);
        let most = MOST_RANGES as u32;
        (0..most).for_each(|n| family.adds_thread(200_000 + n, 10 + n % 2));
        assert_eq!(family.bytes(), before + (MOST_RANGES * size_of::<Threads>()) as u64);
        assert_eq!([100, 200_000, 200_000 + most - 1].map(|tid| of(&family, tid)), [None, Some(10), Some(11)]);
    }

    #[test]
    fn a_rank_that_is_no_number_is_none() {
        let mut family = Family::default();
        family.starts(1, 0);
        for (text, rank) in [("PMI_RANK=3", Some(3)), ("PMI_RANK=-1", None), ("PMI_RANK=", None), ("PMI_RANK=x", None)]
        {
            family.executes(1, b"/app", &env(&[text]));
            assert_eq!(family.all()[0].rank, rank, "{text}");
        }
    }
}
