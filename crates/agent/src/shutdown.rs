/// Urgency of a request to an agent to shut down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Shutdown {
    /// Not at all.
    #[default]
    Stay,
    /// Take no more work, finish what there is.
    Drain,
    /// Interrupt what there is; what does not end within half a minute is killed.
    Stop,
}
