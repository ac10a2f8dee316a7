// The countries of a sample with some of their cities. The names of families and schools come from faker's local data.

import type { Faker } from '@faker-js/faker';
import { faker as german } from '@faker-js/faker/locale/de';
import { faker as greek } from '@faker-js/faker/locale/el';
import { faker as british } from '@faker-js/faker/locale/en_GB';
import { faker as irish } from '@faker-js/faker/locale/en_IE';
import { faker as spanish } from '@faker-js/faker/locale/es';
import { faker as french } from '@faker-js/faker/locale/fr';
import { faker as dutch } from '@faker-js/faker/locale/nl';

export interface City {
  readonly name: string;
  readonly latitude: number;
  readonly longitude: number;
}

export interface Region {
  readonly code: string;
  readonly country: string;
  /** The share of all students who live in this region. */
  readonly share: number;
  readonly faker: Faker;
  /** The largest city comes first, because the first cities get the most branches and students. */
  readonly cities: readonly City[];
  institute(city: string, family: string): string;
}

function city(name: string, latitude: number, longitude: number): City {
  return { name, latitude, longitude };
}

export const regions: readonly Region[] = [
  {
    code: 'GB',
    country: 'United Kingdom',
    share: 0.36,
    faker: british,
    cities: [city('London', 51.51, -0.13), city('Manchester', 53.48, -2.24), city('Leeds', 53.8, -1.55)],
    institute: (name, family) => `${name} ${family} College`,
  },
  {
    code: 'DE',
    country: 'Germany',
    share: 0.2,
    faker: german,
    cities: [city('Berlin', 52.52, 13.41), city('München', 48.14, 11.58), city('Göttingen', 51.54, 9.92)],
    institute: (name, family) => `Hochschule ${family} ${name}`,
  },
  {
    code: 'FR',
    country: 'France',
    share: 0.15,
    faker: french,
    cities: [city('Paris', 48.86, 2.35), city('Lyon', 45.76, 4.84), city('Orléans', 47.9, 1.9)],
    institute: (name, family) => `École ${family}, ${name}`,
  },
  {
    code: 'ES',
    country: 'Spain',
    share: 0.12,
    faker: spanish,
    cities: [city('Madrid', 40.42, -3.7), city('Sevilla', 37.39, -5.98), city('Córdoba', 37.89, -4.78)],
    institute: (name, family) => `Instituto ${family} de ${name}`,
  },
  {
    code: 'NL',
    country: 'Netherlands',
    share: 0.08,
    faker: dutch,
    cities: [city('Amsterdam', 52.37, 4.9), city('Utrecht', 52.09, 5.12), city('Groningen', 53.22, 6.57)],
    institute: (name, family) => `Hogeschool ${family} ${name}`,
  },
  {
    code: 'IE',
    country: 'Ireland',
    share: 0.05,
    faker: irish,
    cities: [city('Dublin', 53.35, -6.26), city('Cork', 51.9, -8.48), city('Limerick', 52.67, -8.63)],
    institute: (name, family) => `${family} Institute, ${name}`,
  },
  {
    code: 'GR',
    country: 'Greece',
    share: 0.04,
    faker: greek,
    cities: [city('Αθήνα', 37.98, 23.73), city('Θεσσαλονίκη', 40.64, 22.94), city('Λάρισα', 39.64, 22.42)],
    institute: (name, family) => `Σχολή ${family}, ${name}`,
  },
];
