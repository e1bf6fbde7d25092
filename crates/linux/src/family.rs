//! The processes that a run has had, for reports: who started them, what they ran, and their MPI ranks.

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

/// All processes of a run, and the threads that they have started.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Family {
    /// By ascending numbers: new processes have the highest.
    processes: Vec<Member>,
    /// Numbers of threads other than the first of each process, ascending, with those of their processes.
    threads: Vec<(u32, u32)>,
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
        let tables = size_of::<Member>() * self.processes.len() + size_of::<(u32, u32)>() * self.threads.len();
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
        self.threads.push((tid, pid));
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
        let started = self.threads.binary_search_by_key(&tid, |thread| thread.0);
        self.process(started.map_or(tid, |place| self.threads[place].1))
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
    use super::{Family, Member};

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
        let tables = 3 * size_of::<Member>() + size_of::<(u32, u32)>();
        assert_eq!(family.bytes(), (tables + "/usr/bin/mpirun".len() + 2 * "/app".len()) as u64);
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
