//! The values that remedies are tried with: from the machine's description, the scenario and its first run.

use std::collections::BTreeSet;

use fxscope_linux::hwpfctl::{self, Call};
use fxscope_machine::Spec;
use fxscope_machine::settings::size;
use fxscope_machine::spec::VECTOR_BITS;
use fxscope_pmu::RemedyValues;
use fxscope_record::{ALL, Region, Run};
use fxscope_session::Scenario;

use super::apply::{THREADS, count};

/// Most numbers of threads that are tried.
const THREAD_COUNTS: usize = 3;
/// No distance of prefetch is larger, lines.
const MOST_LINES: u64 = 256;
/// Parts of the names of functions of OpenMP's libraries.
const OPENMP: [&str; 3] = ["gomp_", "GOMP_", "__kmp"];

/// What values follow from.
pub(super) struct Context<'a> {
    pub scenario: &'a Scenario,
    pub spec: &'a Spec,
    /// The CPUs that the first run has used.
    pub used: BTreeSet<u32>,
    /// Those that the regions have used in which a remedy's rules apply.
    pub used_by_regions: BTreeSet<u32>,
    /// `OMP_NUM_THREADS` of the first run.
    pub openmp_threads: Option<u32>,
    /// Whether the program's threads are those of OpenMP.
    pub has_openmp: bool,
}

impl<'a> Context<'a> {
    /// Returns the context of a scenario after its first run; `regions` are those in which a remedy's rules apply.
    pub(super) fn new(scenario: &'a Scenario, spec: &'a Spec, run: &Run, regions: &[&Region]) -> Context<'a> {
        let cpus = |region: &Region| region.threads.iter().map(|thread| thread.cpu).collect::<Vec<_>>();
        let variable = run.environment.iter().rev().find(|(name, _)| name == THREADS);
        let named = |name: &str| OPENMP.iter().any(|part| name.contains(part));
        Context {
            scenario,
            spec,
            used: run.region(ALL).map(cpus).unwrap_or_default().into_iter().collect(),
            used_by_regions: regions.iter().flat_map(|region| cpus(region)).collect(),
            openmp_threads: variable.and_then(|(_, value)| count(value)),
            has_openmp: variable.is_some() || run.hot_spots.iter().any(|spot| named(&spot.function)),
        }
    }

    /// Returns the values of a kind; those that take runs of their own are not among them.
    pub(super) fn values(&self, kind: RemedyValues) -> Vec<String> {
        let spec = self.spec;
        let shown = |numbers: Vec<u64>| numbers.iter().map(u64::to_string).collect();
        match kind {
            RemedyValues::L1Distances if spec.prefetch.l1 => shown(distances(spec.prefetch.l1_lines, "--distL1")),
            RemedyValues::L2Distances if spec.prefetch.l2 => shown(distances(spec.prefetch.l2_lines, "--distL2")),
            RemedyValues::LargePage if spec.pages.large > spec.pages.normal => vec![size(spec.pages.large)],
            RemedyValues::ThreadCounts => self.thread_counts(),
            RemedyValues::CpusOfOneCmg => self.cpus_of_one_cmg().into_iter().collect(),
            RemedyValues::CpusOfAllCmgs => self.cpus_of_all_cmgs().into_iter().collect(),
            RemedyValues::LocalNode => self.local_node().map(|node| node.to_string()).into_iter().collect(),
            RemedyValues::VectorLengths => {
                let below = |bits: &&u64| **bits < u64::from(spec.clock.vector_bits);
                VECTOR_BITS.iter().rev().filter(below).map(u64::to_string).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The CPUs that the program may use, or those that it has used, in their order.
    fn cpus(&self) -> Vec<u32> {
        let given = self.scenario.placement.cpus(self.spec).ok().flatten();
        let given = given.filter(|cpus| cpus.len() <= self.used.len().max(2));
        given.unwrap_or_else(|| self.used.iter().copied().collect())
    }

    /// The number of a CPU's CMG.
    fn cmg(&self, cpu: u32) -> u32 {
        cpu.saturating_sub(self.spec.topology.first_core) / self.spec.topology.cores_per_cmg.max(1)
    }

    /// The CMGs of CPUs.
    fn cmgs(&self, cpus: &[u32]) -> BTreeSet<u32> {
        cpus.iter().map(|&cpu| self.cmg(cpu)).collect()
    }

    /// Numbers of threads next to the program's that divide the cores of a CMG or are multiples of them.
    fn thread_counts(&self) -> Vec<String> {
        let t = &self.spec.topology;
        let used = self.cpus().len() as u32;
        let now = self.openmp_threads.unwrap_or(used);
        let given = self.scenario.placement.cpus(self.spec).ok().flatten();
        let most = given.map_or(t.cmgs * t.cores_per_cmg, |cpus| cpus.len() as u32);
        if !self.has_openmp || now < 2 {
            return Vec::new();
        }
        let divisors = (1..t.cores_per_cmg).filter(|count| t.cores_per_cmg.is_multiple_of(*count));
        let multiples = (1..=t.cmgs).map(|cmgs| cmgs * t.cores_per_cmg);
        let all: Vec<u32> = divisors.chain(multiples).filter(|&count| count <= most).collect();
        let more = all.iter().copied().find(|&count| count > now);
        let fewer = all.iter().copied().rev().filter(|&count| count < now);
        more.into_iter().chain(fewer).take(THREAD_COUNTS).map(|count| count.to_string()).collect()
    }

    /// As many CPUs as now, on the first of the CMGs that the program uses.
    fn cpus_of_one_cmg(&self) -> Option<String> {
        let (t, cpus) = (&self.spec.topology, self.cpus());
        let cmgs = self.cmgs(&cpus);
        if self.scenario.ranks.is_some() || cmgs.len() < 2 || cpus.len() > t.cores_per_cmg as usize {
            return None;
        }
        let first = t.first_core + cmgs.first()? * t.cores_per_cmg;
        Some(list(first..first + cpus.len() as u32))
    }

    /// As many CPUs as now, on all CMGs in turn.
    fn cpus_of_all_cmgs(&self) -> Option<String> {
        let (t, cpus) = (&self.spec.topology, self.cpus());
        let most = (t.cmgs as usize).min(cpus.len());
        if self.scenario.ranks.is_some() || self.cmgs(&cpus).len() >= most {
            return None;
        }
        let cpu = |place: u32| t.first_core + place % t.cmgs * t.cores_per_cmg + place / t.cmgs;
        let mut spread: Vec<u32> = (0..cpus.len() as u32).map(cpu).collect();
        spread.sort_unstable();
        Some(list(spread))
    }

    /// The memory node of the CMG on which all threads of the regions run; `None` if they run on several.
    fn local_node(&self) -> Option<u32> {
        let cmgs: BTreeSet<u32> = self.used_by_regions.iter().map(|&cpu| self.cmg(cpu)).collect();
        let cmg = cmgs.first().filter(|_| cmgs.len() == 1)?;
        Some(self.spec.topology.first_node + cmg)
    }
}

/// Half of a distance, twice it, and the largest, as far as `option` of `hwpfctl` can set them, in lines.
fn distances(now: u32, option: &str) -> Vec<u64> {
    let now = u64::from(now);
    let settable: Vec<u64> = (1..=MOST_LINES).filter(|&lines| is_settable(option, lines)).collect();
    let at_least = |lines: u64| settable.iter().copied().find(|&settable| settable >= lines);
    let all: BTreeSet<u64> = [now / 2, 2 * now, MOST_LINES]
        .into_iter()
        .filter_map(|lines| at_least(lines).or(settable.last().copied()))
        .collect();
    all.into_iter().filter(|&lines| lines != now).collect()
}

/// Whether `hwpfctl` sets a distance as it is, without rounding it.
fn is_settable(option: &str, lines: u64) -> bool {
    let words = [option.to_owned().into_bytes(), lines.to_string().into_bytes()];
    matches!(hwpfctl::parse(&words), Ok(Call::Set(settings, _)) if settings.notes.is_empty())
}

/// A list of CPUs in ascending order as `taskset` and `numactl` take it.
fn list(cpus: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut().filter(|(_, last)| last + 1 == cpu) {
            Some((_, last)) => *last = cpu,
            None => ranges.push((cpu, cpu)),
        }
    }
    let shown = ranges.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of a kind for a program that has used these CPUs of an A64FX.
    fn values(kind: RemedyValues, cpus: &[u32], openmp_threads: Option<u32>) -> Vec<String> {
        let scenario = Scenario::new("a.out");
        let spec = scenario.spec().expect("built in");
        let used: BTreeSet<u32> = cpus.iter().copied().collect();
        let has_openmp = openmp_threads.is_some();
        let used_by_regions = used.clone();
        Context { scenario: &scenario, spec: &spec, used, used_by_regions, openmp_threads, has_openmp }.values(kind)
    }

    #[test]
    fn distances_follow_from_the_machines_own() {
        assert_eq!(values(RemedyValues::L1Distances, &[12], None), ["3", "12", "15"]);
        assert_eq!(values(RemedyValues::L2Distances, &[12], None), ["20", "60"]);
    }

    #[test]
    fn threads_move_to_one_cmg_or_to_all() {
        let (one, all) = (RemedyValues::CpusOfOneCmg, RemedyValues::CpusOfAllCmgs);
        assert_eq!(values(one, &[12, 24], None), ["12-13"]);
        assert_eq!(values(one, &[24, 25], None), [""; 0], "they are there");
        let many: Vec<u32> = (12..25).collect();
        assert_eq!(values(one, &many, None), [""; 0], "more than a CMG has");
        assert_eq!(values(all, &[12, 13, 14, 15, 16], None), ["12-13,24,36,48"]);
        assert_eq!(values(all, &[12, 24], None), [""; 0], "two threads are on two CMGs");
        assert_eq!(values(RemedyValues::LocalNode, &[24, 25], None), ["5"]);
        assert_eq!(values(RemedyValues::LocalNode, &[12, 24], None), [""; 0]);
    }

    #[test]
    fn numbers_of_threads_divide_a_cmg_or_fill_some() {
        let counts = |cpus: &[u32], threads| values(RemedyValues::ThreadCounts, cpus, threads);
        let twelve: Vec<u32> = (12..24).collect();
        assert_eq!(counts(&twelve, Some(12)), ["24", "6", "4"]);
        assert_eq!(counts(&twelve, Some(5)), ["6", "4", "3"]);
        assert_eq!(counts(&twelve, None), [""; 0], "not known to use OpenMP");
    }

    #[test]
    fn vectors_become_shorter() {
        assert_eq!(values(RemedyValues::VectorLengths, &[12], None), ["256", "128"]);
    }
}
