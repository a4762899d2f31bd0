//! The two dialects, and which one a request is in.


/// A version of A2A on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    V0_3,
    V1_0,
}
