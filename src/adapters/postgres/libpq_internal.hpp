#pragma once

#include "boyd/core/result.hpp"

namespace boyd::adapters::postgres {

/// Loads libpq, once for the process; it is never unloaded. Linked, it and the libraries behind it
/// (OpenLDAP, GnuTLS, SASL, PKCS #11) cost every `boyd` two mebibytes, and its start a third of its
/// time, also where the store is SQLite (ADR 17). To be called before any function of libpq or
/// libpqxx. Error: `store_unavailable` when it is not there; the next call tries again. Blocks for
/// some milliseconds. Threads: any.
result<void> load_libpq();

} // namespace boyd::adapters::postgres
