//! How fast LINPACK (HPL) runs by its size: DGEMM, panels, communication and noise.
//!
//! N follows from memory, work is 2/3 N³. DGEMM takes most of it at its own rate. What computation does not hide comes on top:
//! panels, N² · block / 2 operations on the nodes of a column; their broadcast, N²/2 words by the nodes of a row, and the
//! exchange of rows with its broadcast, twice as much by the nodes of a column. All three fall against the work as N rises, so that
//! efficiency depends on memory for each node, and little on the number of nodes; where it is known and N is not, N follows
//! from it. The share of noise is simulated: panels make
//! nodes wait for one column at a time ([`crate::scale::Meet::Panel`]); threads of a node wait for each other all the time, so that a
//! node counts as one core.

use std::path::Path;

use serde::Deserialize;

use crate::model::{self, Evidence, Model, read};
use crate::network::square;
use crate::scale::{Meet, Setup, simulate};

const BUILT_IN: &[(&str, &str)] = &[("fx1", include_str!("../../../data/linpack/fx1.toml"))];

/// The version of the format.
pub const VERSION: u32 = 1;
/// Panels of which the share of noise is taken.
const PANELS: u64 = 200;
/// Most steps to the N of an efficiency; each takes the noise at the N of the one before.
const STEPS: u32 = 50;

/// A machine as LINPACK sees it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    version: u32,
    /// What it is.
    pub title: String,
    /// Peak of a node, operations a second.
    pub node_flops: f64,
    /// Share of it that DGEMM reaches without noise.
    pub dgemm: f64,
    /// Columns of a panel.
    pub block: u32,
    /// What a node reaches in panels, operations a second.
    pub panel_flops: f64,
    /// Of communication that computation does not hide, bytes a second for each node.
    pub bandwidth: f64,
    /// The share of memory that the largest problem fills.
    pub full_memory: f64,
    /// Its noise: a profile, or a file.
    pub noise: String,
    /// Where the numbers are from.
    pub source: String,
    /// What is known of them.
    pub evidence: Evidence,
    /// Runs to show.
    #[serde(default, rename = "run")]
    pub runs: Vec<Run>,
}

/// A run to show, and what was published of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Nodes.
    pub nodes: u32,
    /// Memory of each, as 32GiB; it is filled where `n` is not given.
    pub memory: Option<String>,
    /// The share of it that is filled; as much as the largest problem fills when it is not given.
    pub fill: Option<f64>,
    /// Rows of the matrix.
    pub n: Option<f64>,
    /// Whether N is not known and follows from the published efficiency.
    #[serde(default)]
    pub solve: bool,
    /// Published efficiency, %.
    pub published: Option<f64>,
    /// Where it is published.
    #[serde(default)]
    pub row: String,
}

/// Reads an amount of memory, as 32GiB or 512MiB; bytes.
///
/// # Errors
/// When it is none.
pub fn memory(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let read =
        UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?.trim().parse::<u32>().ok()?, shift)));
    let bytes = read.map(|(number, shift)| u64::from(number) << shift).filter(|&bytes| bytes > 0 && bytes <= 1 << 50);
    bytes.ok_or_else(|| format!("'{text}' is no amount of memory; write a number and KiB, MiB, GiB or TiB, as 32GiB"))
}

/// A problem on some nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Nodes.
    pub nodes: u32,
    /// Rows of the matrix.
    pub n: f64,
}

impl Problem {
    /// The share of memory that it fills on nodes of `bytes` each.
    #[must_use]
    pub fn fill(&self, bytes: u64) -> f64 {
        8.0 * self.n * self.n / (f64::from(self.nodes) * bytes as f64)
    }
}

/// How the size of a run is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// N is published with the efficiency.
    Published,
    /// N is the one that gives the published efficiency.
    Solved,
    /// N or the share of memory is given, and no efficiency published.
    Given,
}

impl Size {
    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Size::Published => "published",
            Size::Solved => "solved for",
            Size::Given => "given",
        }
    }
}

/// Seconds of a run without noise.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    /// The operations at peak.
    peak: f64,
    /// The same by DGEMM.
    dgemm: f64,
    panel: f64,
    communication: f64,
}

impl Quiet {
    fn seconds(self) -> f64 {
        self.dgemm + self.panel + self.communication
    }
}

/// What a run is made of, each as a share of the time at peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The problem.
    pub problem: Problem,
    /// Seconds.
    pub seconds: f64,
    /// The share of peak that is reached.
    pub efficiency: f64,
    /// Share of the time that DGEMM loses to its own peak.
    pub dgemm: f64,
    /// Share of the time in panels.
    pub panel: f64,
    /// Share of the time in communication.
    pub communication: f64,
    /// Share of the time that noise takes.
    pub noise: f64,
}

impl Machine {
    /// Loads a machine: a built-in one by name, or a file by path.
    ///
    /// # Errors
    /// What is wrong, where, and what to do.
    pub fn load(name_or_path: &str) -> Result<Machine, String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Machine::parse(text, name_or_path);
        }
        if !name_or_path.ends_with(".toml") && !Path::new(name_or_path).exists() {
            return Err(format!(
                "there is no machine '{name_or_path}' for LINPACK; known is fx1; others are named by the path of a .toml file"
            ));
        }
        Machine::parse(&read(Path::new(name_or_path))?, name_or_path)
    }

    /// Reads a machine from text; `name` is what messages call it.
    ///
    /// # Errors
    /// What is wrong, where, and what to do.
    pub fn parse(text: &str, name: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|e| format!("{name}: {}", e.to_string().trim_end()))?;
        if machine.version != VERSION {
            return Err(format!("{name}: version = {}; this program reads version {VERSION}", machine.version));
        }
        let rates = [
            ("node_flops", machine.node_flops),
            ("panel_flops", machine.panel_flops),
            ("bandwidth", machine.bandwidth),
        ];
        if let Some((key, value)) = rates.into_iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            return Err(format!("{name}: {key} = {value} must be above 0"));
        }
        let shares = [("dgemm", machine.dgemm), ("full_memory", machine.full_memory)];
        if let Some((key, value)) = shares.into_iter().find(|(_, v)| !(*v > 0.0 && *v <= 1.0)) {
            return Err(format!("{name}: {key} = {value} must be above 0 and at most 1"));
        }
        if machine.block == 0 {
            return Err(format!("{name}: block = 0; a panel has columns"));
        }
        Ok(machine)
    }

    /// The problem that fills a share `fill` of the memory of `nodes` nodes with `bytes` each.
    ///
    /// # Errors
    /// When nothing can be filled.
    pub fn filling(&self, nodes: u32, bytes: u64, fill: f64) -> Result<Problem, String> {
        if !(fill > 0.0 && fill <= 1.0) {
            return Err(format!("a share {fill} of the memory; above 0 and at most 1 is possible"));
        }
        let n = (bytes as f64 * fill * f64::from(nodes) / 8.0).sqrt().floor();
        self.check(Problem { nodes, n })
    }

    /// The problem of a run, and how its size is known. What is solved for is so under the machine's own noise.
    ///
    /// # Errors
    /// When neither N nor memory is given, or it cannot be worked out.
    pub fn problem(&self, run: &Run, seed: u64) -> Result<(Problem, Size), String> {
        let bytes = run.memory.as_deref().map(memory).transpose()?;
        let size = if run.published.is_some() { Size::Published } else { Size::Given };
        match (run.n, bytes, run.published) {
            (None, Some(bytes), Some(published)) if run.solve => {
                let problem = self.reaching(run.nodes, published / 100.0, seed)?;
                let fill = problem.fill(bytes);
                if fill > 1.0 {
                    return Err(format!(
                        "{published} % on {} nodes needs N = {:.0}, {:.0} % of their memory",
                        run.nodes,
                        problem.n,
                        fill * 100.0
                    ));
                }
                Ok((problem, Size::Solved))
            }
            (n, ..) if run.solve => Err(format!(
                "a run on {} nodes to solve for has {}",
                run.nodes,
                if n.is_some() { "an N" } else { "no memory or no published efficiency" }
            )),
            (Some(n), ..) => Ok((self.check(Problem { nodes: run.nodes, n })?, size)),
            (None, Some(bytes), _) => {
                Ok((self.filling(run.nodes, bytes, run.fill.unwrap_or(self.full_memory))?, Size::Given))
            }
            (None, None, _) => Err(format!("a run on {} nodes needs N or the memory of a node", run.nodes)),
        }
    }

    /// The problem that reaches an efficiency on some nodes.
    ///
    /// # Errors
    /// When none does.
    pub fn reaching(&self, nodes: u32, efficiency: f64, seed: u64) -> Result<Problem, String> {
        let model = self.noise_model()?;
        // Panels and communication against the work fall as 1 / N: at any N they tell what they are at every other.
        let any = self.filling(nodes, 1 << 36, 1.0)?;
        let quiet = self.quiet(any);
        let falling = (quiet.panel + quiet.communication) / quiet.peak * any.n;
        let mut problem = any;
        for _ in 0..STEPS {
            let noise = self.noise(problem, &model, self.quiet(problem).seconds(), seed)?;
            let left = (1.0 - noise) / efficiency - 1.0 / self.dgemm;
            let next = self.check(Problem { nodes, n: (falling / left).round() });
            let next = next.map_err(|_| {
                format!("no N gives {:.2} % on {nodes} nodes: DGEMM and noise leave {left:.4}", efficiency * 100.0)
            })?;
            if next == problem {
                break;
            }
            problem = next;
        }
        Ok(problem)
    }

    /// A problem that can be worked out.
    ///
    /// # Errors
    /// When there are no nodes, or N has no panel for each of their columns.
    pub fn check(&self, problem: Problem) -> Result<Problem, String> {
        let [_, columns] = square(problem.nodes.max(1));
        let least = f64::from(self.block) * f64::from(columns);
        if problem.nodes == 0 {
            return Err("0 nodes; 1 or more are possible".to_owned());
        }
        if problem.n.is_nan() || problem.n < least || problem.n > 1e9 {
            return Err(format!(
                "N = {} is not possible on {} nodes: with blocks of {} columns, {least} is the least and 1e9 the most",
                problem.n, problem.nodes, self.block
            ));
        }
        Ok(problem)
    }

    /// What a run takes under the noise of `model`.
    ///
    /// # Errors
    /// When the noise leaves a core no time.
    pub fn estimate(&self, problem: Problem, model: &Model, seed: u64) -> Result<Estimate, String> {
        let problem = self.check(problem)?;
        let quiet = self.quiet(problem);
        let noise = self.noise(problem, model, quiet.seconds(), seed)?;
        let seconds = quiet.seconds() / (1.0 - noise);
        Ok(Estimate {
            problem,
            seconds,
            efficiency: quiet.peak / seconds,
            dgemm: (quiet.dgemm - quiet.peak) / seconds,
            panel: quiet.panel / seconds,
            communication: quiet.communication / seconds,
            noise,
        })
    }

    /// What it would take without noise.
    fn quiet(&self, Problem { nodes, n }: Problem) -> Quiet {
        let [rows, columns] = square(nodes).map(f64::from);
        let peak = 2.0 / 3.0 * n.powi(3) / (f64::from(nodes) * self.node_flops);
        let communication = match nodes {
            1 => 0.0,
            _ => 8.0 * (n * n / 2.0 / rows + n * n / columns) / self.bandwidth,
        };
        let panel = n * n * f64::from(self.block) / 2.0 / rows / self.panel_flops;
        Quiet { peak, dgemm: peak / self.dgemm, panel, communication }
    }

    /// The share of the time that noise takes, from as many phases as are enough to tell.
    fn noise(&self, problem: Problem, model: &Model, seconds: f64, seed: u64) -> Result<f64, String> {
        let panels = (problem.n / f64::from(self.block)).ceil().max(1.0);
        let grain = ((seconds / panels * 1e9).round() as u64).max(1);
        let phases = (panels as u64).min(PANELS);
        let meet = Meet::Panel { cost: 0, grid: square(problem.nodes) };
        let setup = Setup { nodes: problem.nodes, cores: 1, grain, imbalance: 0.0, phases, meet, seed };
        Ok(simulate(model, &setup)?.noise())
    }

    /// Its noise model.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn noise_model(&self) -> Result<Model, String> {
        model::load(&self.noise)
    }
}
