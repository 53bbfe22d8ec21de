//! `kill -9` of an agent at each step of a run. The engine's own ledger says what really happened.

use harness::cuttable_proxy::{CuttableProxy, Flow};
use harness::run_site::{RunSite, admin_of, until};
use harness::stand_in_engine::Step;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

/// In seconds. A run whose agent is gone waits for half as much again.
const LEASE: u16 = 6;
/// Lease of an agent whose successor reports: no test waits for its end.
const LONG_LEASE: u16 = 30;

/// The agent that plans is killed at this step, and never comes back. Another one is there.
async fn a_plan_is_tried_once_more(step: Step) {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let one = site.agent("one", &server.address);
    site.engine.hold(step);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(step, &run, 1).await;
    drop(one);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    let two = site.agent("two", &server.address);
    site.engine.comes_to(step, &run, 2).await;
    site.engine.let_go(step);
    assert_eq!(admin.end_of(&run).await, "applied");
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")));
    assert_eq!(admin.holder_of(&workspace).await, None);
    drop(two);
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_agent_dies_at_init_is_tried_once_more() {
    a_plan_is_tried_once_more(Step::Init).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_agent_dies_while_it_plans_is_tried_once_more() {
    a_plan_is_tried_once_more(Step::Plan).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_agent_dies_before_all_is_uploaded_is_tried_once_more() {
    a_plan_is_tried_once_more(Step::Show).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_lost_twice_is_given_up_and_lets_others_go_on() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    site.engine.hold(Step::Plan);
    let mut agent = site.agent("one", &server.address);
    let run = admin.start_run(&workspace).await;
    let next = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::Plan, &run, 1).await;
    // One that is started again is another agent.
    agent.signal(Signal::SIGKILL);
    agent.wait();
    agent = site.agent("one", &server.address);
    site.engine.comes_to(Step::Plan, &run, 2).await;
    agent.signal(Signal::SIGKILL);
    agent.wait();
    let _agent = site.agent("one", &server.address);
    assert_eq!(admin.end_of(&run).await, "errored");
    let error = admin.error_of(&run, "plan").await;
    assert!(error.contains("lost 2 times"), "{error}");
    site.engine.let_go(Step::Plan);
    assert_eq!(admin.end_of(&next).await, "applied");
    assert_eq!(site.engine.came_to(Step::Plan, &run).len(), 2);
    assert!(site.engine.came_to(Step::ApplyBegins, &run).is_empty());
    site.is_sound();
}

/// The agent that applies is killed at this step, and never comes back. Another one is there, and must not touch it.
async fn an_apply_is_never_repeated(step: Step) {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let one = site.agent("one", &server.address);
    site.engine.hold(step);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(step, &run, 1).await;
    let sent = match step {
        Step::ApplyBegins => None,
        Step::ApplyEnds => Some(format!("all of {run}")),
        _ => Some(format!("half of {run}")),
    };
    until("what is done by now is known to the server", async || admin.work_in_state(&workspace).await == sent).await;
    let two = site.agent("two", &server.address);
    let next = admin.start_run(&workspace).await;
    drop(one);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    assert_eq!(admin.end_of(&run).await, "errored");
    let error = admin.error_of(&run, "apply").await;
    assert!(error.starts_with("Apply outcome unknown: ") && error.contains("one"), "{error}");
    assert_eq!(admin.holder_of(&workspace).await, Some(run.clone()));
    let shown = admin.get(&format!("/api/v2/workspaces/{workspace}")).await;
    let reason = shown["data"]["attributes"]["locked-reason"].as_str().unwrap_or_default();
    assert!(reason.contains("apply outcome unknown"), "{reason}");
    assert_eq!(admin.work_in_state(&workspace).await, sent, "a state that was sent is kept");
    assert_eq!(admin.run(&next).await["status"], "pending", "nobody goes on before a person has looked");
    assert_eq!(site.status_of_agent(&admin, "one").await, "errored");
    assert_eq!(site.status_of_agent(&admin, "two").await, "idle");

    site.engine.let_go(step);
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/force-unlock");
    admin.done("POST", &unlock, Some(json!({}))).await;
    assert_eq!(admin.end_of(&next).await, "applied");
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1, "it was never repeated");
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &next).len(), 1);
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {next}")));
    drop(two);
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_whose_agent_dies_when_it_begins_is_never_repeated() {
    an_apply_is_never_repeated(Step::ApplyBegins).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_whose_agent_dies_in_the_middle_is_never_repeated() {
    an_apply_is_never_repeated(Step::ApplyIsHalfDone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_whose_agent_dies_before_it_reports_is_never_repeated() {
    an_apply_is_never_repeated(Step::ApplyEnds).await;
}

/// Changes by the engine after its agent was killed are uploaded by the agent's successor.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_started_again_brings_the_state_of_its_apply() {
    let (site, server) = RunSite::with_lease(LONG_LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let agent = site.agent("one", &server.address);
    site.engine.hold(Step::ApplyBegins);
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyBegins, &run, 1).await;
    // Paused, it cannot send what the engine does now.
    agent.signal(Signal::SIGSTOP);
    site.engine.let_go(Step::ApplyBegins);
    site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    drop(agent);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    assert_eq!(admin.work_in_state(&workspace).await, None);
    let _agent = site.agent("one", &server.address);
    assert_eq!(admin.end_of(&run).await, "errored");
    let half = Some(format!("half of {run}"));
    until("the state comes", async || admin.work_in_state(&workspace).await == half).await;
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    let error = admin.error_of(&run, "apply").await;
    assert!(error.starts_with("Apply outcome unknown: ") && error.contains("was killed while it applied"), "{error}");
    assert_eq!(admin.holder_of(&workspace).await, Some(run.clone()), "until a person has looked");
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_before_it_applies_and_started_again_locks_nothing() {
    let (site, server) = RunSite::with_lease(LONG_LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let agent = site.agent("one", &server.address);
    let run = admin.given_planned_run(&workspace).await;
    site.engine.hold(Step::Init);
    admin.post(&format!("/api/v2/runs/{run}/actions/apply"), json!({})).await;
    let deed = site.engine.comes_to(Step::Init, &run, 2).await;
    drop(agent);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    let _agent = site.agent("one", &server.address);
    assert_eq!(admin.end_of(&run).await, "errored");
    let error = admin.error_of(&run, "apply").await;
    assert!(error.contains("was killed before it applied anything"), "{error}");
    assert_eq!(admin.holder_of(&workspace).await, None, "everything is known");
    site.is_sound();
}

/// As the kernel does it when memory runs out.
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_whose_engine_is_killed_waits_for_a_person() {
    let (site, server) = RunSite::with_lease(LONG_LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let _agent = site.agent("one", &server.address);
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    let next = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    kill(Pid::from_raw(deed.process), Signal::SIGKILL).expect("it lives");
    assert_eq!(admin.end_of(&run).await, "errored");
    let error = admin.error_of(&run, "apply").await;
    assert!(error.starts_with("Apply outcome unknown: terraform was killed (signal 9"), "{error}");
    let log = admin.log_of(&run, "apply").await;
    assert!(log.contains("terraform was killed") && log.contains("not all that it did may be in the state"), "{log}");
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("half of {run}")), "what it wrote is kept");
    assert_eq!(admin.holder_of(&workspace).await, Some(run.clone()));
    let shown = admin.get(&format!("/api/v2/workspaces/{workspace}")).await;
    let reason = shown["data"]["attributes"]["locked-reason"].as_str().unwrap_or_default();
    assert!(reason.contains("apply outcome unknown: terraform was killed"), "{reason}");
    assert_eq!(admin.run(&next).await["status"], "pending", "nobody goes on before a person has looked");
    until("the agent is not to blame", async || site.status_of_agent(&admin, "one").await == "idle").await;

    site.engine.let_go(Step::ApplyIsHalfDone);
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/force-unlock");
    admin.done("POST", &unlock, Some(json!({}))).await;
    assert_eq!(admin.end_of(&next).await, "applied");
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1, "it was never repeated");
    site.is_sound();
}

/// Terraform puts a state that it cannot write to its place next to its configuration.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_could_not_be_written_to_its_place_is_sent_from_where_it_is() {
    let (site, server) = RunSite::with_lease(LONG_LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let agent = site.agent("one", &server.address);
    site.engine.cannot_write_states();
    let run = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&run).await, "errored");
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("all of {run}")));
    assert_eq!(admin.holder_of(&workspace).await, None);

    // The same when the agent is killed before it can send it.
    site.engine.hold(Step::ApplyBegins);
    site.engine.hold(Step::ApplyEnds);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyBegins, &run, 1).await;
    agent.signal(Signal::SIGSTOP);
    site.engine.let_go(Step::ApplyBegins);
    site.engine.comes_to(Step::ApplyEnds, &run, 1).await;
    drop(agent);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    let all = Some(format!("all of {run}"));
    assert_ne!(admin.work_in_state(&workspace).await, all);
    let _agent = site.agent("one", &server.address);
    assert_eq!(admin.end_of(&run).await, "errored");
    until("the state comes", async || admin.work_in_state(&workspace).await == all).await;
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    site.is_sound();
}

/// The agent is killed when its server has given it a phase and it has not heard of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_its_agent_never_heard_of_is_done_by_another() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let proxy = CuttableProxy::to(&server.address).await;
    let one = site.agent("one", &proxy.address());
    proxy.let_through(Flow::RequestsOnly);
    let run = admin.start_run(&workspace).await;
    until("it is given out", async || admin.run(&run).await["status"] == "planning").await;
    drop(one);
    let _two = site.agent("two", &server.address);
    assert_eq!(admin.end_of(&run).await, "applied");
    for step in [Step::Plan, Step::ApplyBegins] {
        assert_eq!(site.engine.came_to(step, &run).len(), 1, "{step:?}");
    }
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_its_agent_never_heard_of_waits_for_a_person() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let proxy = CuttableProxy::to(&server.address).await;
    let one = site.agent("one", &proxy.address());
    let run = admin.given_planned_run(&workspace).await;
    proxy.let_through(Flow::RequestsOnly);
    admin.post(&format!("/api/v2/runs/{run}/actions/apply"), json!({})).await;
    until("it is given out", async || admin.run(&run).await["status"] == "applying").await;
    drop(one);
    let _two = site.agent("two", &server.address);
    assert_eq!(admin.end_of(&run).await, "errored");
    let error = admin.error_of(&run, "apply").await;
    assert!(error.starts_with("Apply outcome unknown: ") && error.contains("one"), "{error}");
    assert_eq!(admin.holder_of(&workspace).await, Some(run.clone()));
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/force-unlock");
    admin.done("POST", &unlock, Some(json!({}))).await;
    let next = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&next).await, "applied");
    assert!(site.engine.came_to(Step::ApplyBegins, &run).is_empty(), "nobody repeats what nobody may have begun");
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_plan_whose_agent_dies_goes_on_with_the_next_attempt() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let one = site.agent("one", &server.address);
    site.engine.hold(Step::Plan);
    let run = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::Plan, &run, 1).await;
    until("the log grows", async || admin.log_of(&run, "plan").await.len() > 1000).await;
    drop(one);
    let before = admin.log_of(&run, "plan").await;
    let _two = site.agent("two", &server.address);
    site.engine.comes_to(Step::Plan, &run, 2).await;
    site.engine.let_go(Step::Plan);
    assert_eq!(admin.end_of(&run).await, "applied");
    let log = admin.log_of(&run, "plan").await;
    assert!(log.starts_with(&before), "what people have read stays:\n{before}\nand now\n{log}");
    assert_eq!((log.matches('\u{2}').count(), log.matches('\u{3}').count()), (1, 1), "{log}");
    assert!(log.ends_with('\u{3}'), "{log}");
    let is_new = |line: &&str| **line == format!("plan of {run} has waited 1 times");
    assert_eq!(log.lines().filter(is_new).count(), 2, "one of each attempt:\n{log}");
    site.is_sound();
}

/// The agent is killed when its engine has been interrupted and does not end.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_agent_dies_while_it_cancels_is_canceled() {
    let (site, server) = RunSite::with_lease(LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let one = site.agent("one", &server.address);
    site.engine.hears_no_interrupts();
    site.engine.hold(Step::Plan);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::Plan, &run, 1).await;
    admin.post(&format!("/api/v2/runs/{run}/actions/cancel"), json!({})).await;
    site.engine.comes_to(Step::Interrupted, &run, 1).await;
    assert!(deed.lives());
    drop(one);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    let _two = site.agent("two", &server.address);
    assert_eq!(admin.end_of(&run).await, "canceled");
    assert_eq!(admin.holder_of(&workspace).await, None);
    site.engine.let_go(Step::Plan);
    let next = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&next).await, "applied");
    assert_eq!(site.engine.came_to(Step::Plan, &run).len(), 1, "nobody plans what nobody wants");
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_whose_agent_dies_while_it_cancels_keeps_what_was_done() {
    let (site, server) = RunSite::with_lease(LONG_LEASE).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let one = site.agent("one", &server.address);
    site.engine.hears_no_interrupts();
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    admin.post(&format!("/api/v2/runs/{run}/actions/cancel"), json!({})).await;
    site.engine.comes_to(Step::Interrupted, &run, 1).await;
    drop(one);
    until("the engine does not outlive its agent", async || !deed.lives()).await;
    let _one = site.agent("one", &server.address);
    assert_eq!(admin.end_of(&run).await, "errored");
    let half = Some(format!("half of {run}"));
    until("the state comes", async || admin.work_in_state(&workspace).await == half).await;
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_asked_to_leave_finishes_its_apply_and_takes_nothing_new() {
    let (site, server) = RunSite::with_lease(30).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let mut agent = site.agent("one", &server.address);
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    agent.signal(Signal::SIGTERM);
    let next = admin.start_run(&workspace).await;
    site.engine.let_go(Step::ApplyIsHalfDone);
    assert_eq!(admin.end_of(&run).await, "applied");
    assert!(agent.wait().success());
    assert!(site.engine.came_to(Step::Init, &next).is_empty());
    assert_eq!(admin.run(&next).await["status"], "plan_queued");
    let _successor = site.agent("two", &server.address);
    assert_eq!(admin.end_of(&next).await, "applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_an_agent_that_is_asked_twice_is_anothers_at_once() {
    // So long that no test waits for its end.
    let (site, server) = RunSite::with_lease(300).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    site.engine.hold(Step::Plan);
    let run = admin.start_run(&workspace).await;
    // It is put back more often than a lost plan is.
    for (times, name) in ["one", "two", "three"].into_iter().enumerate() {
        let mut agent = site.agent(name, &server.address);
        let deed = site.engine.comes_to(Step::Plan, &run, times + 1).await;
        agent.signal(Signal::SIGTERM);
        agent.line_of_stderr(|line| line.contains("shutting down (draining)"));
        agent.signal(Signal::SIGTERM);
        assert!(agent.wait().success());
        assert!(!deed.lives());
        assert!(site.engine.came_to(Step::Interrupted, &run).len() > times);
        until("it has left", async || site.status_of_agent(&admin, name).await == "exited").await;
    }
    until("another can have it", async || admin.run(&run).await["status"] == "plan_queued").await;
    site.engine.let_go(Step::Plan);
    let _last = site.agent("four", &server.address);
    assert_eq!(admin.end_of(&run).await, "applied");
    site.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_asked_twice_interrupts_its_engine_and_says_so() {
    let (site, server) = RunSite::with_lease(30).await;
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    let mut agent = site.agent("one", &server.address);
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    let deed = site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    for _ in 0..2 {
        agent.signal(Signal::SIGTERM);
        // Two signals at once are one.
        agent.line_of_stderr(|line| line.contains("shutting down"));
    }
    assert!(agent.wait().success());
    assert!(!deed.lives() && site.engine.was_interrupted(&run));
    assert_eq!(admin.end_of(&run).await, "errored");
    let error = admin.error_of(&run, "apply").await;
    assert!(error.contains("was stopped while it applied"), "{error}");
    assert_eq!(admin.work_in_state(&workspace).await, Some(format!("half of {run}")));
}
