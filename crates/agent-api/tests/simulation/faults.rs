//! Faults besides those of the bucket: partitions, broken connections, paused and killed processes, clocks that are
//! set.

use std::sync::Arc;

use tokio::time::{Instant, sleep, sleep_until};

use crate::network::Place;
use crate::stage::{AGENTS, SERVERS, Stage};

/// In seconds.
pub(crate) const MAX_SERVER_PAUSE_SECONDS: f64 = 75.0;

/// Breaks things until the bad time is over, then mends them.
pub(crate) async fn make_trouble(stage: Arc<Stage>) {
    while stage.is_bad() {
        sleep(stage.seconds(2.0, 14.0)).await;
        if !stage.is_bad() {
            break;
        }
        let (agent, server) = (stage.below(AGENTS), stage.below(SERVERS));
        let pause = |most| (Instant::now() + stage.seconds(1.0, most)).min(stage.over);
        match stage.below(12) {
            0..4 => {
                tokio::spawn(part(Arc::clone(&stage), agent));
            }
            4 => {
                tokio::spawn(part_servers(Arc::clone(&stage)));
            }
            5 => stage.network.reset(Place::Agent(agent)),
            6 => stage.kills[agent].notify_one(),
            7 => stage.server_pauses[server].until(pause(MAX_SERVER_PAUSE_SECONDS)),
            8 => stage.clocks[server].jump(stage.rng.fraction()),
            _ => stage.agent_pauses[agent].until(pause(120.0)),
        }
    }
    sleep_until(stage.over).await;
    stage.world.stop_faults();
    stage.network.heal();
}

/// Cuts an agent off from one server or from all, in one direction or in both.
async fn part(stage: Arc<Stage>, agent: usize) {
    let agent = Place::Agent(agent);
    let servers = match stage.below(2) {
        0 => 0..SERVERS,
        _ => {
            let only = stage.below(SERVERS);
            only..only + 1
        }
    };
    let (there, back) = [(true, true), (true, false), (false, true)][stage.below(3)];
    let ways: Vec<(Place, Place)> = servers
        .flat_map(|number| [(there, (agent, Place::Server(number))), (back, (Place::Server(number), agent))])
        .filter_map(|(is_cut, way)| is_cut.then_some(way))
        .collect();
    for (from, to) in &ways {
        stage.network.block(*from, *to);
    }
    sleep(stage.seconds(3.0, 180.0)).await;
    for (from, to) in &ways {
        stage.network.unblock(*from, *to);
    }
}

/// Delays all messages of an agent from now on.
pub(crate) async fn hold_back(stage: Arc<Stage>, agent: usize) {
    let ways = [0, 1].map(|number| (Place::Agent(agent), Place::Server(number)));
    for (from, to) in ways {
        stage.network.block(from, to);
    }
    sleep(stage.seconds(20.0, 150.0)).await;
    for (from, to) in ways {
        stage.network.unblock(from, to);
    }
}

async fn part_servers(stage: Arc<Stage>) {
    let (one, other) = (Place::Server(0), Place::Server(1));
    stage.network.block(one, other);
    stage.network.block(other, one);
    sleep(stage.seconds(5.0, 60.0)).await;
    stage.network.unblock(one, other);
    stage.network.unblock(other, one);
}
