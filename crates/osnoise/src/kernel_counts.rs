//! Interrupts and stolen time that the kernel counts for each core in `/proc/interrupts`, `/proc/softirqs` and `/proc/stat`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::trace::{Cause, Counted, Kind};

/// Counts since boot, by core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    by_core: BTreeMap<u32, BTreeMap<Cause, (u64, bool)>>,
}

impl Counts {
    /// Reads the three files below `root`. Unreadable files contribute nothing.
    #[must_use]
    pub fn read(root: &Path) -> Counts {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        Counts::parse(&text("proc/interrupts"), &text("proc/softirqs"), &text("proc/stat"))
    }

    /// Parses the three texts. Malformed lines are skipped.
    #[must_use]
    pub fn parse(interrupts: &str, softirqs: &str, stat: &str) -> Counts {
        let mut counts = Counts::default();
        counts.table(interrupts, Kind::Interrupt);
        counts.table(softirqs, Kind::SoftInterrupt);
        counts.steal(stat);
        counts
    }

    fn add(&mut self, core: u32, cause: Cause, amount: u64, time: bool) {
        self.by_core.entry(core).or_default().insert(cause, (amount, time));
    }

    /// Parses a table with one column per core, and names before and after the columns.
    fn table(&mut self, text: &str, kind: Kind) {
        let mut lines = text.lines();
        let heading = lines.next().unwrap_or_default().split_whitespace();
        let cores: Option<Vec<u32>> = heading.map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        for line in lines {
            let (Some(cores), Some((name, rest))) = (&cores, line.split_once(':')) else { continue };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let numbers: Vec<u64> = words.iter().map_while(|word| word.parse().ok()).take(cores.len()).collect();
            // Totals such as ERR have a single number for all cores.
            if numbers.len() < cores.len() {
                continue;
            }
            let label = label(kind, name.trim(), &words[cores.len()..]);
            for (&core, amount) in cores.iter().zip(numbers) {
                let kind = if kind == Kind::Interrupt && name.trim() == "NMI" { Kind::Nmi } else { kind };
                self.add(core, Cause::new(kind, label.clone()), amount, false);
            }
        }
    }

    /// Parses stolen time, which is in hundredths of a second.
    fn steal(&mut self, stat: &str) {
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            let core = words.next().and_then(|word| word.strip_prefix("cpu")?.parse().ok());
            let steal = words.nth(7).and_then(|word| word.parse::<u64>().ok());
            if let (Some(core), Some(steal)) = (core, steal) {
                self.add(core, Cause::new(Kind::Hypervisor, "steal"), steal.saturating_mul(10_000_000), true);
            }
        }
    }

    /// Increases of a core's counts since `before`, largest first.
    #[must_use]
    pub fn since(&self, before: &Counts, core: u32) -> Vec<Counted> {
        let old = before.by_core.get(&core);
        let grown = |(cause, &(amount, time)): (&Cause, &(u64, bool))| {
            let old = old.and_then(|old| old.get(cause)).map_or(0, |old| old.0);
            let amount = amount.saturating_sub(old);
            (amount > 0).then(|| Counted { cause: cause.clone(), amount, time })
        };
        let mut counted: Vec<Counted> = self.by_core.get(&core).into_iter().flatten().filter_map(grown).collect();
        counted.sort_by(|a, b| (b.time, b.amount, &a.cause).cmp(&(a.time, a.amount, &b.cause)));
        counted
    }
}

/// Display name of an interrupt: its description if the name is a number or an abbreviation.
fn label(kind: Kind, name: &str, words: &[&str]) -> String {
    if kind != Kind::Interrupt || words.is_empty() {
        return name.to_owned();
    }
    // Descriptions of numbered interrupts end with the device, after controller and line.
    if name.bytes().all(|b| b.is_ascii_digit()) {
        return format!("{name} {}", words[words.len() - 1]);
    }
    words.join(" ")
}
