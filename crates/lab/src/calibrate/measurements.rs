//! What the measuring program writes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::tables::Benchmark;
use crate::Error;

/// Largest file of measurements, bytes.
const MAX_BYTES: u64 = 16 << 20;
/// The format and its version.
const FORMAT: &str = "fxscope-calibration";
const VERSION: u64 = 1;

/// Measurements of a machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Measurements {
    format: String,
    version: u64,
    /// The benchmarks that ran.
    pub runs: Vec<Run>,
    /// The computer.
    pub host: Host,
}

/// A computer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Bytes of its base pages.
    pub page_bytes: u64,
    /// Length of its vectors.
    pub vector_bits: u64,
    /// Rate of its counter, `CNTFRQ_EL0`.
    pub counter_hz: u64,
    /// Why its events could not be counted, an error number of Linux; 0: they could.
    pub counter_error: u64,
    /// CPUs that were used, by CMG.
    pub cmgs: Vec<Vec<u32>>,
    /// `MIDR_EL1` as the kernel shows it; `None` if it does not.
    pub midr: Option<String>,
    /// Frequency of a core as the kernel shows it, kHz.
    pub frequency_khz: Option<String>,
    /// What governs that frequency.
    pub governor: Option<String>,
    /// The setting of transparent huge pages.
    pub transparent_hugepages: Option<String>,
    /// The setting that permits performance events.
    pub perf_event_paranoid: Option<String>,
}

/// The run of a benchmark.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Run {
    /// Its name.
    pub benchmark: String,
    /// Its loop.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Arguments of the loop.
    pub arguments: String,
    /// Cores of its threads.
    pub threads: String,
    /// Why it has no result.
    #[serde(default)]
    pub failed: Option<String>,
    /// How often it was measured.
    #[serde(default)]
    pub repetitions: u64,
    /// Operations of one repetition, of one thread.
    #[serde(default)]
    pub operations: u64,
    /// Times of the repetitions.
    #[serde(default)]
    pub ns: Times,
    /// Counts of the first thread in one repetition, the median of each.
    #[serde(default)]
    pub events: BTreeMap<String, u64>,
}

/// Times of repetitions, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Times {
    /// The median.
    pub median: u64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

impl Run {
    /// Returns the time of an operation in the fastest repetition, ns.
    #[must_use]
    pub fn ns_per_operation(&self) -> f64 {
        self.ns.min as f64 / self.operations as f64
    }

    /// Returns by how much half of the repetitions were slower at least, ns per operation.
    #[must_use]
    pub fn spread(&self) -> f64 {
        (self.ns.median - self.ns.min) as f64 / self.operations as f64
    }

    /// Returns why it cannot be used, if so.
    fn fault(&self) -> Option<&'static str> {
        let Times { median, min, max } = self.ns;
        match self.failed {
            Some(_) => None,
            None if self.operations == 0 || self.repetitions == 0 => Some("it has no operations"),
            None if min == 0 => Some("it took no time"),
            None if min > median || median > max => Some("its times are not in order"),
            None => None,
        }
    }
}

impl Measurements {
    /// Reads a file of the measuring program.
    ///
    /// # Errors
    /// If the file cannot be read, is not of this program or of another version, or is damaged.
    pub fn read(path: &Path) -> Result<Measurements, Error> {
        let text = fxscope_host::read_text(path, MAX_BYTES).map_err(|e| e.to_string())?;
        Measurements::parse(&text).map_err(|what| format!("{}: {what}", path.display()).into())
    }

    /// Parses the text of such a file.
    ///
    /// # Errors
    /// A message that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Measurements, String> {
        /// What all versions have.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
        }
        const FOREIGN: &str = "this is not a file of `fxscope calibrate collect`";
        let head: Head = serde_json::from_str(text).map_err(|e| format!("{FOREIGN}, or it is not whole: {e}"))?;
        if head.format != FORMAT {
            return Err(FOREIGN.to_owned());
        }
        if head.version != VERSION {
            return Err(format!(
                "it has version {}, this fxscope reads version {VERSION}; measure again with its own program",
                head.version
            ));
        }
        let read: Measurements = serde_json::from_str(text).map_err(|e| format!("the file is damaged: {e}"))?;
        let Host { page_bytes, counter_hz, .. } = read.host;
        if !page_bytes.is_power_of_two() || counter_hz == 0 {
            return Err(format!("the file is damaged: pages of {page_bytes} bytes, a counter of {counter_hz} Hz"));
        }
        match read.runs.iter().find_map(|run| Some((run, run.fault()?))) {
            Some((run, fault)) => Err(format!("the file is damaged: benchmark '{}': {fault}", run.benchmark)),
            None => Ok(read),
        }
    }

    /// Returns the result of a benchmark.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(&self, benchmark: &Benchmark) -> Result<&Run, String> {
        let found = self.runs.iter().find(|run| run.benchmark == benchmark.name).ok_or("not measured")?;
        if let Some(why) = &found.failed {
            return Err(format!("not measured: {why}"));
        }
        let same = (&found.loop_name, &found.arguments, &found.threads)
            == (&benchmark.loop_name, &benchmark.arguments, &benchmark.threads);
        same.then_some(found).ok_or_else(|| "measured with other arguments, by another version".to_owned())
    }

    /// Returns whether the processor is of another kind than the one with this `MIDR_EL1`: maker or part differ. If the kernel did
    /// not show it, it is taken to be of that kind.
    #[must_use]
    pub fn is_of_another_processor(&self, midr: u64) -> bool {
        let kind = |midr: u64| midr & 0xff00_fff0;
        let text = self.host.midr.as_deref().and_then(|text| text.strip_prefix("0x"));
        text.and_then(|digits| u64::from_str_radix(digits, 16).ok()).is_some_and(|own| kind(own) != kind(midr))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::benchmarks;

    const FILE: &str = r#"{"format": "fxscope-calibration", "version": 1, "runs": [
        {"benchmark": "l1-hit", "loop": "chase", "arguments": "nodes=192 hops=4000", "threads": "0.0", "repetitions": 3,
         "operations": 4000, "ns": {"median": 10100, "min": 10060, "max": 12000}},
        {"benchmark": "clock", "loop": "place", "arguments": "", "threads": "0.0", "failed": "no CPU"},
        {"benchmark": "call", "loop": "call", "arguments": "rounds=7", "threads": "0.0", "repetitions": 1, "operations": 7,
         "ns": {"median": 9, "min": 9, "max": 9}}],
        "host": {"name": "node", "kernel": "4.18", "page_bytes": 65536, "vector_bits": 512, "counter_hz": 100000000,
         "counter_error": 13, "cmgs": [[12, 13]], "midr": "0x00000000461f0010", "frequency_khz": null, "governor": null,
         "transparent_hugepages": null, "perf_event_paranoid": "2"}}"#;

    fn of(read: &Measurements, name: &str) -> Result<f64, String> {
        let benchmark = benchmarks().iter().find(|benchmark| benchmark.name == name).expect(name);
        read.of(benchmark).map(Run::ns_per_operation)
    }

    #[test]
    fn a_result_is_the_time_of_an_operation_in_the_fastest_repetition() {
        let read = Measurements::parse(FILE).expect("sound");
        assert_eq!(of(&read, "l1-hit"), Ok(2.515));
        assert_eq!(read.runs[0].spread(), 0.01);
    }

    #[test]
    fn a_benchmark_without_result_says_why() {
        let read = Measurements::parse(FILE).expect("sound");
        assert_eq!(of(&read, "clock"), Err("not measured: no CPU".to_owned()));
        assert_eq!(of(&read, "fault"), Err("not measured".to_owned()));
        assert!(of(&read, "call").is_err_and(|why| why.contains("other arguments")));
    }

    #[test]
    fn files_that_are_foreign_damaged_or_of_another_version_are_refused() {
        let refused = |from: &str, to: &str| Measurements::parse(&FILE.replace(from, to)).expect_err(to);
        assert!(refused("fxscope-calibration", "something").contains("not a file of"));
        assert!(refused("\"version\": 1", "\"version\": 2").contains("it has version 2"));
        assert!(refused("65536", "65537").contains("pages of 65537 bytes"));
        assert!(refused("\"min\": 10060", "\"min\": 10160").contains("benchmark 'l1-hit': its times are not in order"));
        assert!(refused("\"operations\": 7", "\"operations\": 0").contains("benchmark 'call': it has no operations"));
        assert!(refused("\"kernel\": \"4.18\",", "").contains("damaged"));
        for length in 0..FILE.len() {
            assert!(Measurements::parse(&FILE[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_processor_of_another_maker_or_part_is_noticed() {
        let read = |midr: &str| Measurements::parse(&FILE.replace("461f0010", midr)).expect("sound");
        let a64fx = 0x461f_0010;
        assert!(!read("461f0010").is_of_another_processor(a64fx));
        assert!(!read("460f0011").is_of_another_processor(a64fx), "another revision");
        assert!(read("411fd401").is_of_another_processor(a64fx), "Neoverse V1");
    }
}
