// Writes DuckDB's dates, times and intervals in ISO 8601.

const INFINITE_DAYS = 2 ** 31 - 1;
const INFINITE_TIME = 2n ** 63n - 1n;
const SECONDS_PER_DAY = 86_400;

/** Returns a date, given as days since 1970. */
export function dateText(days: number): string {
  if (days === INFINITE_DAYS) return 'infinity';
  if (days === -INFINITE_DAYS) return '-infinity';
  // The years of this count begin in March, so that a leap day is the last day of its year.
  const sinceEpoch = days + 719_468;
  const era = Math.floor(sinceEpoch / 146_097);
  const dayOfEra = sinceEpoch - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${yearText(year)}-${twoDigits[month]}-${twoDigits[day]}`;
}

const twoDigits: readonly string[] = Array.from({ length: 100 }, (_, number) =>
  String(number).padStart(2, '0'),
);

function yearText(year: number): string {
  if (year >= 0 && year <= 9999) return String(year).padStart(4, '0');
  return `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(6, '0')}`;
}

/**
 * Returns a timestamp, given in units of ten to the power of minus `digits` seconds since 1970. The fraction has as many
 * groups of three digits as it needs.
 */
export function timestampText(units: bigint, zone: '' | 'Z', digits = 6): string {
  if (units === INFINITE_TIME) return 'infinity';
  if (units === -INFINITE_TIME) return '-infinity';
  const unitsPerDay = SECONDS_PER_DAY * 10 ** digits;
  const approximate = Number(units);
  if (Number.isSafeInteger(approximate)) {
    const days = Math.floor(approximate / unitsPerDay);
    return `${dateText(days)}T${timeOfDay(approximate - days * unitsPerDay, digits)}${zone}`;
  }
  const perDay = BigInt(unitsPerDay);
  const ofDay = ((units % perDay) + perDay) % perDay;
  return `${dateText(Number((units - ofDay) / perDay))}T${timeOfDay(Number(ofDay), digits)}${zone}`;
}

/** Returns a time of day, given in units of ten to the power of minus `digits` seconds since midnight. */
export function timeText(units: bigint, digits = 6): string {
  return timeOfDay(Number(units), digits);
}

function timeOfDay(units: number, digits: number): string {
  const perSecond = 10 ** digits;
  const seconds = Math.floor(units / perSecond);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const whole = `${twoDigits[hours]}:${twoDigits[minutes - hours * 60]}:${twoDigits[seconds - minutes * 60]}`;
  const fraction = units - seconds * perSecond;
  if (fraction === 0) return whole;
  return `${whole}.${String(fraction)
    .padStart(digits, '0')
    .replace(/(000)+$/, '')}`;
}

/** Returns the offset of a time zone. */
export function zoneText(offsetSeconds: number): string {
  if (offsetSeconds === 0) return 'Z';
  const seconds = Math.abs(offsetSeconds);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (parts[2] === 0) parts.pop();
  return `${offsetSeconds < 0 ? '-' : '+'}${parts.map((part) => twoDigits[part]).join(':')}`;
}

/** Returns an interval, for example P1Y2M3DT4H5M6.5S. Each part of an interval has its own sign. */
export function intervalText(interval: {
  readonly months: number;
  readonly days: number;
  readonly micros: bigint;
}): string {
  const { months, days, micros } = interval;
  const part = (amount: number | bigint, unit: string) => (Number(amount) === 0 ? '' : `${amount}${unit}`);
  const date = part(Math.trunc(months / 12), 'Y') + part(months % 12, 'M') + part(days, 'D');
  const seconds = micros / 1_000_000n;
  const time =
    part(seconds / 3600n, 'H') +
    part((seconds / 60n) % 60n, 'M') +
    secondsText(seconds % 60n, micros % 1_000_000n);
  if (date === '' && time === '') return 'PT0S';
  return `P${date}${time === '' ? '' : `T${time}`}`;
}

function secondsText(seconds: bigint, micros: bigint): string {
  if (seconds === 0n && micros === 0n) return '';
  const sign = seconds < 0n || micros < 0n ? '-' : '';
  const whole = String(seconds).replace('-', '');
  const fraction = String(micros).replace('-', '').padStart(6, '0').replace(/0+$/, '');
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}S`;
}
