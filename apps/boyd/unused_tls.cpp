/// libpq brings OpenLDAP and with it GnuTLS, which prepares itself, its ciphers and PKCS #11
/// whenever a program starts: half a mebibyte. Its constructor asks this function first
/// (GNUTLS_SKIP_GLOBAL_INIT in gnutls.h); OpenLDAP prepares it explicitly if it ever needs it.
extern "C" int _gnutls_global_init_skip() {
  return 1;
}
