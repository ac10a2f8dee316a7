/** Of this package; the server's log can show it. */
export const CLIENT_VERSION = '0.1.0';
