//! An engine that does nothing but tell, in a ledger outside taco, what it was asked to do. Whatever servers and agents
//! believe, this is what happened.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::estate::{EstateEdge, EstateUnit};

const PROGRAM: &str = include_str!("stand_in_engine.sh");
const PROGRAM_OF_UNITS: &str = include_str!("stand_in_units.sh");

/// Long enough for a machine that is busy with other tests.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(90);

/// Step at which an engine can be held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Init,
    Plan,
    Show,
    /// Nothing is done yet.
    ApplyBegins,
    /// Half of it is done and in the state.
    ApplyIsHalfDone,
    /// All is done and in the state.
    ApplyEnds,
    /// Someone wants it to stop. Nothing is held here.
    Interrupted,
}

impl Step {
    fn word(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Plan => "plan",
            Self::Show => "show",
            Self::ApplyBegins => "apply-begins",
            Self::ApplyIsHalfDone => "apply-is-half-done",
            Self::ApplyEnds => "apply-ends",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Something that an engine did.
#[derive(Clone, Debug)]
pub struct Deed {
    word: String,
    pub run: String,
    pub process: i32,
    /// Told only by engines that make units.
    unit: Option<String>,
}

impl Deed {
    /// True if the engine is still alive. A zombie is dead.
    pub fn lives(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.process))
            .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
    }
}

/// Programs called `terraform` and `tofu`, and their ledger.
pub struct StandInEngine(TempDir);

impl StandInEngine {
    pub fn install() -> Self {
        let place = tempfile::tempdir().expect("there is room for a directory");
        fs::create_dir(place.path().join("bin")).expect("made");
        fs::write(place.path().join("ledger"), "").expect("written");
        let engine = Self(place);
        engine.be(PROGRAM);
        engine
    }

    /// From now on engines make units that use outputs of each other, as [`unit_configuration`] says.
    pub fn makes_units(&self) {
        fs::create_dir(self.0.path().join("made")).expect("made");
        self.be(PROGRAM_OF_UNITS);
    }

    fn be(&self, program: &str) {
        let program = program.replace("@PLACE@", &self.0.path().display().to_string());
        for name in ["terraform", "tofu"] {
            let path = self.0.path().join("bin").join(name);
            fs::write(&path, &program).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it can be run");
        }
    }

    /// A `PATH` on which nothing else is called like an engine.
    pub fn search_path(&self) -> OsString {
        let programs = self.0.path().join("bin");
        std::env::join_paths([&programs, Path::new("/usr/bin"), Path::new("/bin")]).expect("no colons")
    }

    /// Engines that reach this step wait there.
    pub fn hold(&self, step: Step) {
        fs::write(self.gate(step), "").expect("written");
    }

    pub fn let_go(&self, step: Step) {
        fs::remove_file(self.gate(step)).expect("it was held");
    }

    /// From now on engines do not end when they are interrupted.
    pub fn hears_no_interrupts(&self) {
        fs::write(self.0.path().join("deaf"), "").expect("written");
    }

    /// From now on engines cannot write the end of their state to its place, and fail as terraform does then.
    pub fn cannot_write_states(&self) {
        fs::write(self.0.path().join("read-only"), "").expect("written");
    }

    fn gate(&self, step: Step) -> std::path::PathBuf {
        self.0.path().join(format!("hold-{}", step.word()))
    }

    fn deeds(&self) -> Vec<Deed> {
        let ledger = fs::read_to_string(self.0.path().join("ledger")).expect("it is there");
        // An engine may be writing the last line.
        let whole = ledger.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let deeds = whole.lines().map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let process = words[2].parse().expect("a process");
            let unit = words.get(3).map(|unit| (*unit).to_owned());
            Deed { word: words[0].to_owned(), run: words[1].to_owned(), process, unit }
        });
        deeds.collect()
    }

    /// Occurrences of this step of a run, with the processes of the engines.
    pub fn came_to(&self, step: Step, run: &str) -> Vec<Deed> {
        self.deeds().into_iter().filter(|deed| deed.word == step.word() && deed.run == run).collect()
    }

    /// Values of the environment variable `ZONE` with which engines came to this step of a run.
    pub fn zones_given(&self, step: Step, run: &str) -> Vec<String> {
        let given = fs::read_to_string(self.0.path().join("given")).unwrap_or_default();
        let begin = format!("{} {run} ", step.word());
        given.lines().filter_map(|line| line.strip_prefix(&begin)).map(str::to_owned).collect()
    }

    /// The runs whose engines came to this step, in the order in which they did.
    pub fn order_of(&self, step: Step) -> Vec<String> {
        self.deeds().into_iter().filter(|deed| deed.word == step.word()).map(|deed| deed.run).collect()
    }

    /// The units whose engines came to this step, in the order in which they did.
    pub fn units_at(&self, step: Step) -> Vec<String> {
        let deeds = self.deeds().into_iter().filter(|deed| deed.word == step.word());
        deeds.filter_map(|deed| deed.unit).collect()
    }

    /// True if an engine of this run was asked to stop.
    pub fn was_interrupted(&self, run: &str) -> bool {
        self.deeds().iter().any(|deed| deed.word == "interrupted" && deed.run == run)
    }

    /// Waits until engines have come to this step so many times.
    pub fn wait_for_number(&self, step: Step, times: usize) {
        let deadline = std::time::Instant::now() + ENGINE_TIMEOUT;
        while self.order_of(step).len() < times {
            assert!(std::time::Instant::now() < deadline, "nothing comes to {step:?}: {:?}", self.deeds());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Process of the engine that has done something last.
    pub fn newest_process(&self) -> i32 {
        self.deeds().last().expect("an engine has done something").process
    }

    /// Waits until no engine lives any more.
    pub fn wait_until_all_are_dead(&self) {
        let deadline = std::time::Instant::now() + ENGINE_TIMEOUT;
        while self.deeds().iter().any(Deed::lives) {
            assert!(std::time::Instant::now() < deadline, "engines live on: {:?}", self.deeds());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the engine has come to this step of a run so many times; the last of them.
    pub async fn comes_to(&self, step: Step, run: &str, times: usize) -> Deed {
        let deadline = Instant::now() + ENGINE_TIMEOUT;
        loop {
            let came = self.came_to(step, run);
            if came.len() >= times {
                return came.into_iter().next_back().expect("at least one");
            }
            assert!(Instant::now() < deadline, "{run} does not come to {step:?}: {:?}", self.deeds());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Configuration of a unit of an estate for engines that make units.
pub fn unit_configuration(unit: &EstateUnit) -> String {
    let uses = |edge: &EstateEdge| format!("# uses {} {}\n", edge.producer, edge.uses.join(" "));
    format!("# salt {}\n{}", unit.salt, unit.depends.iter().map(uses).collect::<String>())
}
