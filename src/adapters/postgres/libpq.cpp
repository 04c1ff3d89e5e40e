#include "libpq_internal.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <libpq-fe.h>
#include <mutex>

/// libpq by its own names, for libpqxx and this folder: each function is looked for at its first
/// call in the library that load_libpq() loaded.
namespace boyd::adapters::postgres {

namespace {

/// libpq's ABI, unchanged since 2005.
constexpr auto file = "libpq.so.5";

std::atomic<void*> loaded{nullptr};

/// A function of libpq. All that comes here has been past load_libpq(), and this build names only
/// functions that libpq has had for longer than Debian 12.
void* function(const char* name) {
  void* found = ::dlsym(loaded.load(std::memory_order_acquire), name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s has no %s: install libpq5\n", file, name);
    std::abort();
  }
  return found;
}

} // namespace

result<void> load_libpq() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (loaded.load(std::memory_order_acquire) != nullptr)
    return {};
  void* handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(errc::store_unavailable, "PostgreSQL's client library cannot be loaded", file,
                "install libpq5");
  loaded.store(handle, std::memory_order_release);
  return {};
}

} // namespace boyd::adapters::postgres

// The header declares each of them: another signature does not compile.
#define FORWARD(result, name, parameters, ...)                                                     \
  result name parameters {                                                                         \
    static const auto f =                                                                          \
        reinterpret_cast<decltype(&::name)>(boyd::adapters::postgres::function(#name));            \
    return f(__VA_ARGS__);                                                                         \
  }

extern "C" {

FORWARD(int, PQbackendPID, (const PGconn* conn), conn)
FORWARD(int, PQcancel, (PGcancel * cancel, char* errbuf, int errbufsize), cancel, errbuf,
        errbufsize)
FORWARD(void, PQclear, (PGresult * res), res)
FORWARD(int, PQclientEncoding, (const PGconn* conn), conn)
FORWARD(char*, PQcmdStatus, (PGresult * res), res)
FORWARD(char*, PQcmdTuples, (PGresult * res), res)
FORWARD(PostgresPollingStatusType, PQconnectPoll, (PGconn * conn), conn)
FORWARD(PGconn*, PQconnectStart, (const char* conninfo), conninfo)
FORWARD(PGconn*, PQconnectdb, (const char* conninfo), conninfo)
FORWARD(PGconn*, PQconnectdbParams,
        (const char* const* keywords, const char* const* values, int expand_dbname), keywords,
        values, expand_dbname)
FORWARD(PQconninfoOption*, PQconninfo, (PGconn * conn), conn)
FORWARD(void, PQconninfoFree, (PQconninfoOption * connOptions), connOptions)
FORWARD(PQconninfoOption*, PQconninfoParse, (const char* conninfo, char** errmsg), conninfo, errmsg)
FORWARD(int, PQconsumeInput, (PGconn * conn), conn)
FORWARD(char*, PQdb, (const PGconn* conn), conn)
FORWARD(char*, PQencryptPassword, (const char* passwd, const char* user), passwd, user)
FORWARD(char*, PQencryptPasswordConn,
        (PGconn * conn, const char* passwd, const char* user, const char* algorithm), conn, passwd,
        user, algorithm)
FORWARD(int, PQendcopy, (PGconn * conn), conn)
FORWARD(char*, PQerrorMessage, (const PGconn* conn), conn)
FORWARD(unsigned char*, PQescapeByteaConn,
        (PGconn * conn, const unsigned char* from, size_t from_length, size_t* to_length), conn,
        from, from_length, to_length)
FORWARD(char*, PQescapeIdentifier, (PGconn * conn, const char* str, size_t len), conn, str, len)
FORWARD(size_t, PQescapeStringConn,
        (PGconn * conn, char* to, const char* from, size_t length, int* error), conn, to, from,
        length, error)
FORWARD(PGresult*, PQexec, (PGconn * conn, const char* query), conn, query)
FORWARD(PGresult*, PQexecParams,
        (PGconn * conn, const char* command, int nParams, const Oid* paramTypes,
         const char* const* paramValues, const int* paramLengths, const int* paramFormats,
         int resultFormat),
        conn, command, nParams, paramTypes, paramValues, paramLengths, paramFormats, resultFormat)
FORWARD(PGresult*, PQexecPrepared,
        (PGconn * conn, const char* stmtName, int nParams, const char* const* paramValues,
         const int* paramLengths, const int* paramFormats, int resultFormat),
        conn, stmtName, nParams, paramValues, paramLengths, paramFormats, resultFormat)
FORWARD(void, PQfinish, (PGconn * conn), conn)
FORWARD(int, PQfmod, (const PGresult* res, int field_num), res, field_num)
FORWARD(char*, PQfname, (const PGresult* res, int field_num), res, field_num)
FORWARD(int, PQfnumber, (const PGresult* res, const char* field_name), res, field_name)
FORWARD(void, PQfreeCancel, (PGcancel * cancel), cancel)
FORWARD(void, PQfreemem, (void* ptr), ptr)
FORWARD(int, PQfsize, (const PGresult* res, int field_num), res, field_num)
FORWARD(Oid, PQftable, (const PGresult* res, int field_num), res, field_num)
FORWARD(int, PQftablecol, (const PGresult* res, int field_num), res, field_num)
FORWARD(Oid, PQftype, (const PGresult* res, int field_num), res, field_num)
FORWARD(PGcancel*, PQgetCancel, (PGconn * conn), conn)
FORWARD(int, PQgetCopyData, (PGconn * conn, char** buffer, int async), conn, buffer, async)
FORWARD(PGresult*, PQgetResult, (PGconn * conn), conn)
FORWARD(int, PQgetisnull, (const PGresult* res, int tup_num, int field_num), res, tup_num,
        field_num)
FORWARD(int, PQgetlength, (const PGresult* res, int tup_num, int field_num), res, tup_num,
        field_num)
FORWARD(char*, PQgetvalue, (const PGresult* res, int tup_num, int field_num), res, tup_num,
        field_num)
FORWARD(char*, PQhost, (const PGconn* conn), conn)
FORWARD(void, PQinitOpenSSL, (int do_ssl, int do_crypto), do_ssl, do_crypto)
FORWARD(int, PQisBusy, (PGconn * conn), conn)
FORWARD(int, PQisthreadsafe, (), )
FORWARD(int, PQnfields, (const PGresult* res), res)
FORWARD(PGnotify*, PQnotifies, (PGconn * conn), conn)
FORWARD(int, PQntuples, (const PGresult* res), res)
FORWARD(Oid, PQoidValue, (const PGresult* res), res)
FORWARD(char*, PQport, (const PGconn* conn), conn)
FORWARD(PGresult*, PQprepare,
        (PGconn * conn, const char* stmtName, const char* query, int nParams,
         const Oid* paramTypes),
        conn, stmtName, query, nParams, paramTypes)
FORWARD(int, PQprotocolVersion, (const PGconn* conn), conn)
FORWARD(int, PQputCopyData, (PGconn * conn, const char* buffer, int nbytes), conn, buffer, nbytes)
FORWARD(int, PQputCopyEnd, (PGconn * conn, const char* errormsg), conn, errormsg)
FORWARD(void, PQreset, (PGconn * conn), conn)
FORWARD(char*, PQresultErrorField, (const PGresult* res, int fieldcode), res, fieldcode)
FORWARD(char*, PQresultErrorMessage, (const PGresult* res), res)
FORWARD(ExecStatusType, PQresultStatus, (const PGresult* res), res)
FORWARD(int, PQsendQuery, (PGconn * conn, const char* query), conn, query)
FORWARD(int, PQserverVersion, (const PGconn* conn), conn)
FORWARD(int, PQsetClientEncoding, (PGconn * conn, const char* encoding), conn, encoding)
FORWARD(PGVerbosity, PQsetErrorVerbosity, (PGconn * conn, PGVerbosity verbosity), conn, verbosity)
FORWARD(PQnoticeProcessor, PQsetNoticeProcessor, (PGconn * conn, PQnoticeProcessor proc, void* arg),
        conn, proc, arg)
FORWARD(int, PQsocket, (const PGconn* conn), conn)
FORWARD(ConnStatusType, PQstatus, (const PGconn* conn), conn)
FORWARD(void, PQtrace, (PGconn * conn, FILE* debug_port), conn, debug_port)
FORWARD(unsigned char*, PQunescapeBytea, (const unsigned char* strtext, size_t* retbuflen), strtext,
        retbuflen)
FORWARD(void, PQuntrace, (PGconn * conn), conn)
FORWARD(char*, PQuser, (const PGconn* conn), conn)
FORWARD(const char*, pg_encoding_to_char, (int encoding), encoding)

} // extern "C"

#undef FORWARD
