//! `taco server` and `taco doctor` on every bucket, good and bad.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use harness::bucket_servers::{BucketServer, variables_of};
use harness::home::{Home, ServerProcess};
use taco_ledger::Location;

use crate::places;

fn command(home: &Home, verb: &str, location: &Location) -> Command {
    let mut command = home.taco(&[verb]);
    command.envs(variables_of(location)).env("TACO_SECRET_KEY", "a key that only these tests know");
    if verb == "server" {
        command.env("TACO_LISTEN", "127.0.0.1:0");
    }
    command
}

/// The same command, started by another one.
fn through(starter: &[&str], command: &Command) -> Command {
    let (first, rest) = starter.split_first().expect("a program");
    let mut wrapped = Command::new(first);
    wrapped.args(rest).arg(command.get_program()).args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.current_dir(command.get_current_dir().expect("it runs in a home"));
    wrapped
}

/// Runs a command that must fail; returns what it said on its two outputs.
fn failure(mut command: Command) -> (String, String) {
    let output = command.output().expect("it runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    (stdout.into_owned(), stderr.into_owned())
}

/// The one line of a server that refused to start.
fn refusal(mut command: Command) -> String {
    // On a busy machine the log may warn that the bucket is slow.
    command.env("TACO_LOG_LEVEL", "error");
    let (stdout, stderr) = failure(command);
    assert_eq!((stdout.as_str(), stderr.lines().count()), ("", 1), "{stdout}{stderr}");
    stderr
}

/// The checks that failed at the doctor's.
fn failed_checks(command: Command) -> Vec<String> {
    let (table, _) = failure(command);
    let failed = table.lines().filter_map(|row| row.split_once("\tfailed\t"));
    failed.map(|(check, _)| check.to_owned()).collect()
}

macro_rules! a_server_starts_and_the_doctor_is_content {
    ($($place:ident),*) => {
        mod a_server_starts_and_the_doctor_is_content {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $place() {
                    super::starts_on(&crate::places::$place().await).await;
                }
            )*
        }
    };
}

a_server_starts_and_the_doctor_is_content! { directory, gofakes3, versitygw, azurite, fake_gcs }

async fn starts_on(place: &places::Place) {
    let location = place.location.as_ref().expect("not memory");
    let home = Home::default();
    let server = ServerProcess::start(&mut command(&home, "server", location));
    assert_eq!(server.read("/readyz").await.0, 200);
    let output = command(&home, "doctor", location).output().expect("it runs");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !table.contains("\twarned\t"), "{table}");
}

#[tokio::test]
async fn a_store_that_lets_two_creators_win_is_refused() {
    let server = BucketServer::s3s_fs().await.unwrap_or_else(|error| panic!("{error:#}"));
    let (home, location) = (Home::default(), server.location());
    let line = refusal(command(&home, "server", &location));
    assert!(line.contains("does not honour create-if-absent"), "{line}");
    assert_eq!(failed_checks(command(&home, "doctor", &location)), ["create-if-absent under a race"]);
}

#[test]
fn a_directory_without_write_permission_is_named() {
    let home = Home::default();
    let directory = home.path().join("bucket");
    fs::create_dir(&directory).expect("it is made");
    fs::set_permissions(&directory, Permissions::from_mode(0o555)).expect("it is ours");
    let location = Location::directory(&directory);
    // Root may write anywhere, unless it gives that privilege up.
    let plain: &[&str] =
        if nix::unistd::geteuid().is_root() { &["setpriv", "--bounding-set=-dac_override"] } else { &["env"] };
    let line = refusal(through(plain, &command(&home, "server", &location)));
    assert!(line.contains(directory.to_str().expect("UTF-8")) && line.contains("Permission denied"), "{line}");
    assert_eq!(failed_checks(through(plain, &command(&home, "doctor", &location))), ["write permission"]);
    assert_eq!(fs::read_dir(&directory).expect("readable").count(), 0);
}

#[test]
fn a_full_disk_is_named() {
    let home = Home::default();
    let disk = home.path().join("disk");
    fs::create_dir(&disk).expect("it is made");
    let location = Location::directory(&disk);
    let on_a_full_disk = |verb| {
        let mount =
            format!("mount -t tmpfs -o size=64k tmpfs '{0}' && head -c 64k /dev/zero >'{0}/filler'", disk.display());
        let script = format!("{mount} && exec \"$@\"");
        let starter = ["unshare", "--map-root-user", "--mount", "sh", "-c", &script, "sh"];
        through(&starter, &command(&home, verb, &location))
    };
    let line = refusal(on_a_full_disk("server"));
    assert!(line.contains("No space left on device") && line.contains("probes/"), "{line}");
    assert!(line.contains("Make room"), "{line}");
    assert_eq!(failed_checks(on_a_full_disk("doctor")), ["write permission"]);
    assert!(is_empty(&disk), "the disk was one of its own");
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).expect("readable").next().is_none()
}
