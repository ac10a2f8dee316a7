/**
 * Who has sent a request: the number of the organisation, or a text if the organisation is not known, such as the
 * client's address. Owners take turns on the serving thread.
 */
export type Owner = number | string;
