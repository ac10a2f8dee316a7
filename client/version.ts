/** The version of this package. It is sent in the User-Agent header. */
export const CLIENT_VERSION = '0.1.0';
