//! Isolation of runs from each other's processes, from their supervisor, and from their agent.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
use nix::unistd::{geteuid, getpgid};
use taco_agent_protocol::{Engine, FromServer, Outcome, PhaseKind};

use crate::agent_process::{AgentProcess, directory, eventually, lives, parent};
use crate::cancellations::{endless, pid};
use crate::fake_server::FakeServer;
use crate::scenario::{Run, Scenario};
use crate::scripted_engine;

fn kernel_keeps_signals() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

/// A configuration that executes a line of a shell when it is applied.
fn executes(line: &str) -> Run {
    let main = format!(
        r#"resource "terraform_data" "line" {{
          provisioner "local-exec" {{ command = "{line}" }}
        }}"#
    );
    Run::of(Engine::Terraform, &[("main.tf", &main)])
}

/// The process that watches over the engine of a shell: the shell's parent is the engine.
const SUPERVISOR: &str = r"$(awk '{print $4}' /proc/$PPID/stat)";

/// Starts a process that has left everything which could tell whose it is, and waits until it is there.
fn daemon(place: &std::path::Path) -> String {
    let place = place.display();
    format!(
        "(cd / && exec env -i setsid sh -c 'echo $$ > {place}/pid.tmp; mv {place}/pid.tmp {place}/pid; exec sleep 600') \
         > /dev/null 2>&1 < /dev/null & while [ ! -e {place}/pid ]; do sleep 0.05; done"
    )
}

#[tokio::test]
async fn a_run_can_end_neither_another_run_nor_its_own_supervisor_nor_the_agent() {
    if !kernel_keeps_signals() {
        println!("this kernel cannot keep runs from sending signals: nothing was tried");
        return;
    }
    let scenario = Scenario::begin().await;
    let place = directory();
    let victim = Run::of(Engine::Terraform, &[("main.tf", &endless(place.path(), "sleep 600"))]);
    scenario.plan(&victim).await;
    let applying = scenario.hand_out(&victim, PhaseKind::Apply).await;
    let shell = pid(place.path()).await;
    // The other run must not meet a state that changes.
    eventually("its state is sent", || scenario.server.seen().state.is_some()).await;
    let engine = parent(shell);
    let supervisor = parent(engine);
    assert_eq!(parent(supervisor), scenario.agent.pid().as_raw());
    let group = getpgid(Some(nix::unistd::Pid::from_raw(engine))).expect("it lives");
    let attempts = [
        format!("kill -9 {shell} || echo refused the shell"),
        format!("kill -9 {engine} || echo refused the engine"),
        format!("kill -9 -{group} || echo refused the group"),
        format!("kill -9 {supervisor} || echo refused the supervisor"),
        format!("kill -9 {SUPERVISOR} || echo refused its own supervisor"),
        format!("kill -9 {} || echo refused the agent", scenario.agent.pid()),
    ];
    scenario.server.seen().state = None;
    let (phase, _) = scenario.apply(&executes(&attempts.join("; "))).await;
    let log = scenario.server.log(&phase);
    for whom in ["shell", "engine", "group", "supervisor", "its own supervisor", "agent"] {
        let refused = if whom.starts_with("its") { format!("refused {whom}") } else { format!("refused the {whom}") };
        assert!(log.lines().any(|line| line.ends_with(&refused)), "{refused} in {log}");
    }
    for process in [shell, engine, supervisor] {
        assert!(lives(process));
    }
    scenario.server.say(FromServer::Cancel { phase: applying, force: false });
    assert_eq!(
        scenario.server.outcome(&applying).await,
        Outcome::Canceled { incomplete: false },
        "its agent may stop it"
    );
}

/// As on a kernel that cannot keep a run from it.
#[tokio::test]
async fn what_a_run_leaves_behind_that_has_killed_its_supervisor_is_ended_and_told() {
    let (server, work_dir, place) = (FakeServer::start().await, directory(), directory());
    let said = place.path().join("said");
    let agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.arg("--unconfined").stderr(fs::File::create(&said).expect("a file"));
    });
    server.agent_is_connected().await;
    let said = || fs::read_to_string(&said).expect("a file");
    assert!(said().contains("runs are not fully isolated: ") && said().contains("a run can end its agent"));
    let scenario = Scenario { server, agent, work_dir };
    let run = executes(&format!("{}; kill -9 {SUPERVISOR}; sleep 600", daemon(place.path())));
    scenario.plan(&run).await;
    let phase = scenario.hand_out(&run, PhaseKind::Apply).await;
    let outcome = scenario.server.outcome(&phase).await;
    let Outcome::Errored { message, incomplete: true, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(message.contains("together with the process that watches over it"), "{message}");
    let daemon = pid(place.path()).await;
    assert!(!lives(daemon), "it was gone before the outcome came");
    let log = scenario.server.log(&phase);
    let told = log.lines().find(|line| line.contains("the run left processes behind, which were ended"));
    let told = told.unwrap_or_else(|| panic!("{log}"));
    for name in [format!("sleep ({daemon})"), "terraform (".to_owned()] {
        assert!(told.contains(&name) && said().contains(&name), "{name} in {told}");
    }
    // What the agent started itself is not taken for it.
    scenario.server.seen().state = None;
    scenario.apply(&executes("true")).await;
}

/// Only root can start programs as someone else.
#[tokio::test]
async fn runs_at_the_same_time_have_users_of_their_own() {
    if !geteuid().is_root() {
        println!("only root can give runs other users: nothing was tried");
        return;
    }
    let (server, place, home) = (FakeServer::start().await, directory(), directory());
    for directory in [&place, &home] {
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("a mode");
    }
    let work = home.path().join("work");
    // Each tells who it is, waits for the other, and tries to end it and to read its files.
    let plan = format!(
        r#"cd {0}; echo "$$" > pid-$TFC_RUN_ID.tmp; mv pid-$TFC_RUN_ID.tmp pid-$TFC_RUN_ID
        id -u > user-$TFC_RUN_ID
        while [ $(ls pid-run-* | grep -vc tmp) -lt 2 ]; do sleep 0.05; done
        for other in pid-run-*; do
            [ "$(cat $other)" = $$ ] && continue
            kill -9 $(cat $other) && touch killed
            cat {1}/runs/${{other#pid-}}/engine/cli.tfrc && touch read
        done
        touch tried-$TFC_RUN_ID
        while [ $(ls tried-* | wc -l) -lt 2 ]; do sleep 0.05; done
        echo plan > $out"#,
        place.path().display(),
        work.display(),
    );
    scripted_engine::install(&work, &plan, "");
    let agent = AgentProcess::start(&server.address, &work, |command| {
        // Nothing but the users keeps them apart.
        command.args(["--run-as", "64000-64001", "--unconfined"]);
    });
    server.agent_is_connected().await;
    let scenario = Scenario { server, agent, work_dir: home };
    let runs = [scripted_engine::run(), scripted_engine::run()];
    let mut phases = Vec::new();
    for run in &runs {
        phases.push(scenario.hand_out(run, PhaseKind::Plan).await);
    }
    for phase in &phases {
        let outcome = scenario.server.outcome(phase).await;
        assert!(matches!(outcome, Outcome::Planned(_)), "{outcome:?}: {}", scenario.server.log(phase));
    }
    let user = |run: &Run| fs::read_to_string(place.path().join(format!("user-{}", run.id))).expect("a file");
    let mut users = runs.each_ref().map(user);
    users.sort_unstable();
    assert_eq!(users, ["64000\n", "64001\n"]);
    for deed in ["killed", "read"] {
        assert!(!place.path().join(deed).exists(), "neither could do anything to the other");
    }
    eventually("nothing is left of them", || fs::read_dir(work.join("runs")).is_ok_and(|runs| runs.count() == 0)).await;
}
