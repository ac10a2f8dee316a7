// Whether tests run thoroughly. HEADGATE_TEST_ALL=1 asks for it: tests that kill, attack or measure again and again do so
// many times instead of a few, and no test is skipped because the machine lacks a program.

export const isThorough = process.env.HEADGATE_TEST_ALL === '1';

export function times(thorough: number, otherwise: number): number {
  return isThorough ? thorough : otherwise;
}
