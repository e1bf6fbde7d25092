//! Recorded detours that a source replays.

use std::fmt::Write as _;

/// Maximum number of detours in a trace.
const MOST: usize = 100_000_000;

/// Detours of one or more cores over a time span; repeats when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Recorded time, nanoseconds.
    pub duration: u64,
    /// Start and length of each detour, nanoseconds, by core, ascending and disjoint.
    pub cores: Vec<Vec<(u64, u32)>>,
    /// The recording it belongs to: sources with the same recording replay it from the same moment on. Empty for a
    /// separate trace.
    pub recording: String,
    /// Whether the system could run it on another core.
    pub movable: bool,
    /// All lengths, ascending.
    lengths: Vec<u32>,
    /// Time taken from each core, nanoseconds.
    stolen: Vec<u64>,
}

impl Trace {
    /// Makes a trace from a recording; adjacent or overlapping detours of a core are merged.
    ///
    /// # Errors
    /// No core, no time, or a detour after the end.
    pub fn new(duration: u64, mut cores: Vec<Vec<(u64, u32)>>) -> Result<Trace, String> {
        if cores.is_empty() || duration == 0 {
            return Err("the trace is empty: it needs a duration and at least one core".to_owned());
        }
        for (number, core) in cores.iter_mut().enumerate() {
            core.sort_unstable();
            core.retain(|detour| detour.1 > 0);
            let mut joined: Vec<(u64, u32)> = Vec::with_capacity(core.len());
            for &(start, length) in core.iter() {
                let end = start.saturating_add(u64::from(length));
                if end > duration {
                    return Err(format!(
                        "core {number} has a detour from {start} to {end} ns, after the trace's end at {duration} ns"
                    ));
                }
                match joined.last_mut() {
                    Some(last) if last.0 + u64::from(last.1) >= start => {
                        let joint = end.max(last.0 + u64::from(last.1)) - last.0;
                        last.1 = u32::try_from(joint).map_err(|_| {
                            format!("core {number} has a detour of more than 4 s from {} ns on", last.0)
                        })?;
                    }
                    _ => joined.push((start, length)),
                }
            }
            *core = joined;
        }
        Ok(Trace::of(duration, cores, String::new(), false))
    }

    fn of(duration: u64, cores: Vec<Vec<(u64, u32)>>, recording: String, movable: bool) -> Trace {
        let mut lengths: Vec<u32> = cores.iter().flatten().map(|detour| detour.1).collect();
        lengths.sort_unstable();
        let stolen = cores.iter().map(|core| core.iter().map(|detour| u64::from(detour.1)).sum()).collect();
        Trace { duration, cores, recording, movable, lengths, stolen }
    }

    /// Parses the text form: a line `duration_ns,N`, a line `core,start_ns,length_ns`, then one line per detour. Empty
    /// lines and lines that start with `#` are ignored. Core numbers need not start at 0.
    ///
    /// # Errors
    /// The invalid line and the reason.
    pub fn parse(text: &str) -> Result<Trace, String> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let first = lines.next().and_then(|(_, line)| line.strip_prefix("duration_ns,")?.trim().parse().ok());
        let duration: u64 = first.ok_or("the trace must begin with a line 'duration_ns,N'")?;
        if lines.next().is_none_or(|(_, line)| line.replace(' ', "") != "core,start_ns,length_ns") {
            return Err("the trace's second line must be 'core,start_ns,length_ns'".to_owned());
        }
        let mut cores: std::collections::BTreeMap<u32, Vec<(u64, u32)>> = std::collections::BTreeMap::new();
        for (count, (number, line)) in lines.enumerate() {
            if count >= MOST {
                return Err(format!("line {number}: more than {MOST} detours; shorten the trace"));
            }
            let wrong = || format!("line {number}: '{line}' is not core,start_ns,length_ns in whole numbers");
            let mut parts = line.split(',').map(str::trim);
            let [Some(core), Some(start), Some(length), None] =
                [parts.next(), parts.next(), parts.next(), parts.next()]
            else {
                return Err(wrong());
            };
            let core = core.parse().map_err(|_| wrong())?;
            let detour = (start.parse().map_err(|_| wrong())?, length.parse().map_err(|_| wrong())?);
            cores.entry(core).or_default().push(detour);
        }
        if cores.is_empty() {
            return Err("the trace has no detours".to_owned());
        }
        Trace::new(duration, cores.into_values().collect())
    }

    /// Returns the text form.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("duration_ns,{}\ncore,start_ns,length_ns\n", self.duration);
        for (core, detours) in self.cores.iter().enumerate() {
            for (start, length) in detours {
                let _ = writeln!(out, "{core},{start},{length}");
            }
        }
        out
    }

    /// Returns the share of the time that is taken, averaged over cores.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.stolen.iter().sum::<u64>() as f64 / (self.duration as f64 * self.cores.len() as f64)
    }

    /// Returns the share of the time of a core that is taken.
    #[must_use]
    pub fn fraction_of(&self, core: usize) -> f64 {
        self.stolen.get(core).copied().unwrap_or(0) as f64 / self.duration as f64
    }

    /// Returns whether another trace belongs to the same recording.
    #[must_use]
    pub fn goes_with(&self, other: &Trace) -> bool {
        !self.recording.is_empty() && (&self.recording, self.duration) == (&other.recording, other.duration)
    }

    /// Returns the share of detours longer than `x` nanoseconds.
    #[must_use]
    pub fn exceeds(&self, x: f64) -> f64 {
        let longer = self.lengths.len() - self.lengths.partition_point(|&length| f64::from(length) <= x);
        longer as f64 / self.lengths.len().max(1) as f64
    }

    /// Returns the longest detour, nanoseconds.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.lengths.last().copied().map_or(0.0, f64::from)
    }

    /// Returns the trace with all lengths multiplied by `length`, keeping an evenly spread share `kept` of the detours.
    #[must_use]
    pub fn scaled(&self, kept: f64, length: f64) -> Trace {
        let pick = |core: &Vec<(u64, u32)>| {
            let taken = core.iter().enumerate().filter(|(i, _)| {
                let before = (*i as f64 * kept).floor();
                ((*i as f64 + 1.0) * kept).floor() > before
            });
            taken.map(|(_, &(start, l))| (start, (f64::from(l) * length).round() as u32)).collect()
        };
        Trace::of(self.duration, self.cores.iter().map(pick).collect(), self.recording.clone(), self.movable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_survives_its_text_form() {
        let trace = Trace::new(1000, vec![vec![(10, 5), (100, 50)], vec![(0, 1)]]).unwrap();
        assert_eq!(Trace::parse(&trace.text()).unwrap(), trace);
        assert!((trace.fraction() - 56.0 / 2000.0).abs() < 1e-12);
    }

    #[test]
    fn detours_that_touch_become_one() {
        let trace = Trace::new(1000, vec![vec![(10, 5), (15, 5), (18, 10)]]).unwrap();
        assert_eq!(trace.cores, [[(10, 18)]]);
    }

    #[test]
    fn bad_traces_are_refused_with_the_line() {
        for (text, why) in [
            ("", "duration_ns"),
            ("duration_ns,5", "second line"),
            ("duration_ns,5\ncore,start_ns,length_ns\n", "no detour"),
            ("duration_ns,5\ncore,start_ns,length_ns\n0,1", "line 3"),
            ("duration_ns,5\ncore,start_ns,length_ns\n0,1,x", "line 3"),
            ("duration_ns,5\ncore,start_ns,length_ns\n0,1,-4", "line 3"),
            ("duration_ns,5\ncore,start_ns,length_ns\n0,4,2", "after the trace's end"),
        ] {
            let error = Trace::parse(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
