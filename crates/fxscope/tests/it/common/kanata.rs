//! Reads logs of the format Kanata 0004 and checks them against its documentation (docs/kanata-log-format.md of the
//! viewer Konata), independently of the code that writes them.

use std::collections::BTreeMap;

/// Log entries of one instruction (a row of the viewer).
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its number in the simulator, and the thread.
    pub in_simulator: u64,
    pub thread: u64,
    /// Texts of types 0 and 1.
    pub label: String,
    pub details: String,
    /// Stages in lanes 0 and 1: name, first cycle, cycle after the last.
    pub lanes: [Vec<(String, u64, u64)>; 2],
    /// Rows it depends on, and when the log states it.
    pub producers: Vec<(usize, u64)>,
    pub started: u64,
    pub retired: u64,
    open: [bool; 2],
    done: bool,
}

impl Row {
    /// Returns the stage of this name in lane 0.
    pub fn stage(&self, name: &str) -> Option<(u64, u64)> {
        self.lanes[0].iter().find(|s| s.0 == name).map(|s| (s.1, s.2))
    }

    /// Returns the stage that dependency arrows connect.
    pub fn execution(&self) -> Option<(u64, u64)> {
        let mut all = self.lanes.iter().flatten().filter(|s| s.0.contains('X'));
        let one = all.next().map(|s| (s.1, s.2));
        assert!(all.next().is_none(), "arrows would end at another stage");
        one
    }
}

/// Reads a log.
///
/// # Panics
/// If it violates the documentation, or, beyond that, if rows are not numbered without gaps or do not retire in order,
/// or stages of lane 0 leave a gap.
pub fn read(log: &str) -> Vec<Row> {
    assert!(log.ends_with('\n'), "the last line is whole");
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("Kanata\t0004"));
    let first = lines.next().and_then(|line| line.strip_prefix("C=\t")).expect("the time of the first command");
    let mut now: u64 = first.parse().expect("a cycle");
    let mut rows: Vec<Row> = Vec::new();
    let mut retired = 0;
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| -> usize { fields[i].parse().unwrap_or_else(|_| panic!("{line}")) };
        let expected = BTreeMap::from([("C", 2), ("I", 4), ("L", 4), ("S", 4), ("E", 4), ("R", 4), ("W", 4)]);
        assert_eq!(expected.get(fields[0]), Some(&fields.len()), "{line}");
        if fields[0] == "C" {
            assert!(number(1) > 0, "{line}");
            now += number(1) as u64;
            continue;
        }
        let id = number(1);
        if fields[0] == "I" {
            assert_eq!(id, rows.len(), "numbers have no gaps");
            let (in_simulator, thread) = (number(2) as u64, number(3) as u64);
            rows.push(Row { in_simulator, thread, started: now, ..Row::default() });
            continue;
        }
        let known = rows.len();
        let row = rows.get_mut(id).unwrap_or_else(|| panic!("{line}: before its I"));
        assert!(!row.done, "{line}: behind its R");
        match fields[0] {
            "L" => match number(2) {
                0 => row.label += fields[3],
                1 => row.details += fields[3],
                _ => panic!("{line}"),
            },
            "S" => {
                let lane = number(2);
                assert!(!row.open[lane], "{line}: another stage is open");
                let end = row.lanes[lane].last().map_or(row.started, |s| s.2);
                assert!(if lane == 0 { now == end } else { now >= end }, "{line}: a gap");
                row.lanes[lane].push((fields[3].to_owned(), now, now));
                row.open[lane] = true;
            }
            "E" => {
                let lane = number(2);
                assert!(std::mem::replace(&mut row.open[lane], false), "{line}: nothing is open");
                let stage = row.lanes[lane].last_mut().expect("open");
                assert_eq!(stage.0, fields[3], "{line}");
                assert!(now > stage.1, "{line}: a stage of no cycle");
                stage.2 = now;
            }
            "W" => {
                let producer = number(2);
                assert!(producer < id && producer < known && number(3) == 0, "{line}");
                row.producers.push((producer, now));
            }
            _ => {
                assert_eq!(number(2), retired, "{line}: retired in order");
                assert_eq!(number(3), 0, "{line}: the right path is not flushed");
                assert_eq!(row.open, [false; 2], "{line}: a stage is open");
                assert!(row.lanes[0].len() > 1 && !row.label.is_empty(), "{line}");
                (row.done, row.retired) = (true, now);
                retired += 1;
            }
        }
    }
    assert_eq!(retired, rows.len(), "every row retires");
    rows
}
